// `import { work } from "chaski/swarm"`: a page as a worker of a swarm.

export { SwarmError, forget, work } from "./src/swarm/work.js";
