// Conversations that are longer than the context of a model.

/** Characters of a message that the model reads. */
const size = ({ content, tool_calls }) => (content?.length ?? 0) + (tool_calls ? JSON.stringify(tool_calls).length : 0);
const sum = (messages) => messages.reduce((n, message) => n + size(message), 0);

/**
 * A conversation without its oldest turns, since all of it has `found` tokens, and the context `limit`. A quarter of the
 * context goes at once, and `more` quarters on top: the next prompt then begins like this one, and is found in the cache.
 * Null if its last turn is all that is left.
 */
export function recent(messages, { found, limit }, more) {
  const begin = messages[0]?.role === "system" ? 1 : 0;
  const starts = messages.flatMap(({ role }, i) => (role === "user" && i > begin ? [i] : []));
  if (starts.length === 0) return null;
  const quarter = limit / 4;
  const nQuarter = Math.max(1, Math.ceil((found - 3 * quarter) / quarter)) + more;
  const goal = (nQuarter * quarter * sum(messages)) / found;
  const at = starts.find((at) => sum(messages.slice(begin, at)) >= goal) ?? starts.at(-1);
  return [...messages.slice(0, begin), ...messages.slice(at)];
}
