// Vercel's AI SDK and openai-node against a server: node check.mjs URL

import assert from 'node:assert/strict';

import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateObject, generateText, jsonSchema, streamText } from 'ai';
import OpenAI from 'openai';

const [url, name] = [process.argv[2], 'golden'];
const provider = createOpenAICompatible({
  name: 'chaski', baseURL: `${url}/v1`, apiKey: 'none', includeUsage: true, supportsStructuredOutputs: true,
});
const story = { model: provider(name), prompt: 'Tell me a story.', temperature: 0, maxOutputTokens: 12 };

const checks = {
  async 'the AI SDK has texts and streams of them'() {
    const whole = await generateText(story);
    assert.deepEqual([whole.finishReason, whole.usage.outputTokens], ['length', 12]);
    const streamed = streamText(story);
    let text = '';
    for await (const piece of streamed.textStream) text += piece;
    assert.equal(text, whole.text);
    assert.equal((await streamed.usage).outputTokens, 12);
  },
  async 'the AI SDK has objects by a schema'() {
    const kind = { type: 'string', enum: ['red', 'grey'] };
    const schema = jsonSchema({ type: 'object', properties: { kind }, required: ['kind'], additionalProperties: false });
    const { object } = await generateObject({ ...story, prompt: 'A fox?', maxOutputTokens: 60, schema });
    assert.ok(kind.enum.includes(object.kind), JSON.stringify(object));
  },
  async 'an abort of openai-node frees the place'() {
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none' });
    const aborted = new AbortController();
    const messages = [{ role: 'user', content: 'Tell me a story.' }];
    const body = { model: name, stream: true, max_tokens: 400, messages, ignore_eos: true };
    const stream = await client.chat.completions.create(body, { signal: aborted.signal });
    let n = 0;
    for await (const _ of stream) {
      n += 1;
      if (n > 5) {
        aborted.abort();
        break;
      }
    }
    await new Promise((done) => setTimeout(done, 500));
    const slots = await (await fetch(`${url}/slots`)).json();
    assert.ok(slots.every((slot) => !slot.is_processing), JSON.stringify(slots));
  },
};

for (const [what, check] of Object.entries(checks)) {
  await check();
  console.log(`ok ${what}`);
}
