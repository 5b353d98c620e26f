// Where the browser keeps conversations: a database of this origin, or the page's memory where it has none.

const NAME = "chaski";
const STORE = "conversations";
/** Earlier versions kept each conversation under such a key. */
const PREFIX = "chaski.conversation.";

/** The browser's storage of small values; null where it is blocked. */
export function local() {
  try {
    return globalThis.localStorage;
  } catch {
    return null;
  }
}

/** Small values in one of the browser's storages, where it allows that. */
const values = (storage) => ({
  /** Keeps a value; without one it is forgotten. */
  remember(name, value) {
    try {
      if (value) storage()?.setItem(name, value);
      else storage()?.removeItem(name);
    } catch {
      // It is forgotten with the page.
    }
  },
  /** A value that was kept, or null. */
  recall(name) {
    try {
      return storage()?.getItem(name) ?? null;
    } catch {
      return null;
    }
  },
});

/** Values that all tabs share, and values of this one. */
export const { remember, recall } = values(local);
export const tab = values(() => globalThis.sessionStorage);

const done = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** Conversations by their ids, in IndexedDB. Other tabs hear of changes. */
class Database {
  #db;
  #channel = globalThis.BroadcastChannel ? new BroadcastChannel(NAME) : null;

  constructor(db) {
    this.#db = db;
    // Another tab has a newer version of the page: it gets the database.
    db.onversionchange = () => db.close();
  }

  /** `heard` is called with the id of a conversation that another tab has changed. */
  listen(heard) {
    this.#channel?.addEventListener("message", ({ data }) => typeof data === "string" && heard(data));
  }

  #run(mode, f) {
    return done(f(this.#db.transaction(STORE, mode).objectStore(STORE)));
  }

  /** All of them; what cannot be read is left out. */
  async all() {
    const keys = await this.#run("readonly", (store) => store.getAllKeys());
    const found = await Promise.all(keys.map((key) => this.get(key).then((value) => [key, value], () => null)));
    return found.filter(Boolean);
  }

  get(id) {
    return this.#run("readonly", (store) => store.get(id));
  }

  async put(id, value) {
    await this.#run("readwrite", (store) => store.put(value, id));
    this.#channel?.postMessage(id);
  }

  async remove(id) {
    await this.#run("readwrite", (store) => store.delete(id));
    this.#channel?.postMessage(id);
  }
}

/** Stands for the database where there is none. */
class Nothing {
  listen() {}
  async all() {
    return [];
  }
  async get() {
    return undefined;
  }
  async put() {
    throw new Error("this browser does not let the page keep anything");
  }
  async remove() {}
}

/** Brings along what an earlier version kept elsewhere. */
async function migrate(storage) {
  const keys = Object.keys(local() ?? {}).filter((key) => key.startsWith(PREFIX));
  for (const key of keys) {
    try {
      await storage.put(key.slice(PREFIX.length), JSON.parse(recall(key)));
    } catch {
      // It is none, or there is no room for it: it stays where it is.
      continue;
    }
    remember(key, null);
  }
}

export async function openStorage() {
  try {
    const request = indexedDB.open(NAME, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    const storage = new Database(await done(request));
    await migrate(storage);
    return storage;
  } catch {
    return new Nothing();
  }
}
