// Digests, and proofs that both sides have the token, which never crosses the wire (crates/wire/src/proof.rs).

export const hex = (bytes) => Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** The bytes of hexadecimal digits; null for anything but `n` bytes of them. */
export function unhex(text, n) {
  if (typeof text !== "string" || (n !== undefined && text.length !== 2 * n) || !/^([0-9a-f]{2})*$/i.test(text)) return null;
  return Uint8Array.from({ length: text.length / 2 }, (_, i) => parseInt(text.slice(2 * i, 2 * i + 2), 16));
}

export const random = (n) => crypto.getRandomValues(new Uint8Array(n));

export const sha256 = async (bytes) => hex(await crypto.subtle.digest("SHA-256", bytes));

/**
 * The values that a proof covers.
 * @param {{ hub: string, worker: string, hello: Uint8Array }} values nonces, and the payload of HELLO
 * @param {"hub" | "worker"} role
 */
async function covered({ hub, worker, hello }, role) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", hello));
  const parts = [new TextEncoder().encode(role), Uint8Array.of(0), unhex(hub, 32), unhex(worker, 32), digest];
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

const imported = (token, use) => crypto.subtle.importKey("raw", unhex(token, 16), { name: "HMAC", hash: "SHA-256" }, false, [use]);

/** The proof of a side. */
export async function prove(token, role, values) {
  return hex(await crypto.subtle.sign("HMAC", await imported(token, "sign"), await covered(values, role)));
}

/** True if a proof is that of a side; compared in constant time. */
export async function verify(token, role, values, proof) {
  const bytes = unhex(proof, 32);
  if (!bytes) return false;
  return crypto.subtle.verify("HMAC", await imported(token, "verify"), bytes, await covered(values, role));
}
