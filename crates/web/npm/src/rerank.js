// Documents by their relevance to a query, in the form of Jina and Cohere.

import { EngineError, badRequest } from "./errors.js";
import { allow } from "./kinds.js";

const KNOWN = ["query", "documents", "texts", "top_n", "return_documents", "lora", "model", "user", "signal"];

/** The texts of a request, and what makes the answer of their scores. */
export function asked(request) {
  allow(request, KNOWN);
  const { query, lora, top_n: top, return_documents: withDocuments } = request;
  if (typeof query !== "string") throw badRequest("query: expected a text");
  const given = request.documents ?? request.texts;
  const documents = Array.isArray(given) ? given.map((document) => document?.text ?? document) : [];
  if (documents.length === 0 || !documents.every((text) => typeof text === "string")) throw badRequest("documents: expected texts, or objects with a text");
  const row = ([index, relevance_score]) => ({ index, relevance_score, ...(withDocuments && { document: { text: documents[index] } }) });
  const whole = ({ tokens, scores }, model) => {
    if (!scores.every(Number.isFinite)) throw new EngineError("internal", "the model's scores are not finite");
    return {
      id: `rerank-${Date.now().toString(36)}${Math.random().toString(36).slice(2)}`,
      object: "list",
      model,
      results: [...scores.entries()].sort((a, b) => b[1] - a[1]).slice(0, top ?? undefined).map(row),
      usage: { prompt_tokens: tokens, total_tokens: tokens },
      meta: { billed_units: { search_units: 1 }, tokens: { input_tokens: tokens } },
    };
  };
  return { query, documents, lora: lora && JSON.stringify(lora), whole };
}
