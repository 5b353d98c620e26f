// What most pages do with the package, for its size.

import { Engine } from "chaski";

globalThis.load = (model) => Engine.create({ model });
