// A worker of your own that imports this runs the engine for the pages that have it; it exports nothing.

export {};
