// A page that does with the package what most do, for its size.

import { Engine } from "chaski";

globalThis.load = (model) => Engine.create({ model });
