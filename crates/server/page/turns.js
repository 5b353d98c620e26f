// Conversations that are longer than the context of a model.

/** Characters of a message that the model reads. */
const size = ({ content, tool_calls }) => (content?.length ?? 0) + (tool_calls ? JSON.stringify(tool_calls).length : 0);
const sum = (messages) => messages.reduce((n, message) => n + size(message), 0);

/**
 * A conversation without its oldest turns, since all of it has `found` tokens, and the context `limit`. A quarter of the
 * context goes at once, and `more` quarters on top: the next prompt then begins like this one, and is found in the cache.
 * Fewer than `most` messages are left; null if that cannot be.
 */
export function recent(messages, { found, limit }, more, most = messages.length) {
  const begin = messages[0]?.role === "system" ? 1 : 0;
  const starts = messages.flatMap(({ role }, i) => (role === "user" && i > begin ? [i] : []));
  const quarter = limit / 4;
  const nQuarter = Math.max(1, Math.ceil((found - 3 * quarter) / quarter)) + more;
  const goal = (nQuarter * quarter * sum(messages)) / found;
  const shorter = starts.filter((at) => begin + messages.length - at < most);
  const at = shorter.find((at) => sum(messages.slice(begin, at)) >= goal) ?? shorter.at(-1);
  return at === undefined ? null : [...messages.slice(0, begin), ...messages.slice(at)];
}
