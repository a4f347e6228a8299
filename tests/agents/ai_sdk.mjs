// A small agent on the AI SDK: node ai_sdk.mjs FOLDER_WITH_PACKAGES anthropic|chat|responses BASE_URL
import fs from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [folder, kind, base] = process.argv.slice(2);
const here = createRequire(folder + '/package.json');
const load = async name => import(pathToFileURL(here.resolve(name)).href);
const { streamText, tool, stepCountIs, isStepCount } = await load('ai');
const z = await load('zod');

const settings = { baseURL: base + '/v1', apiKey: 'k' };
const models = {
  anthropic: async () => (await load('@ai-sdk/anthropic')).createAnthropic(settings)('claude-opus-4-6'),
  responses: async () => (await load('@ai-sdk/openai')).createOpenAI(settings).responses('gpt-5.5'),
  chat: async () => (await load('@ai-sdk/openai-compatible')).createOpenAICompatible({ name: 'fake', ...settings })('fake-model'),
};
const tools = {
  read: tool({
    description: 'Read a file',
    inputSchema: z.strictObject({ path: z.string() }),
    execute: async ({ path }) => fs.readFileSync(path, 'utf8'),
  }),
  edit: tool({
    description: 'Edit a file',
    inputSchema: z.strictObject({ path: z.string(), edits: z.array(z.strictObject({ oldText: z.string(), newText: z.string() })) }),
    execute: async ({ path, edits }) => {
      let text = fs.readFileSync(path, 'utf8');
      for (const { oldText, newText } of edits) text = text.replace(oldText, () => newText);
      fs.writeFileSync(path, text);
      return 'edited';
    },
  }),
};
let failed = false;
const answer = streamText({
  model: await models[kind](), tools, maxRetries: 1, stopWhen: (isStepCount ?? stepCountIs)(6),
  prompt: 'Fix add in calc.py: it subtracts instead of adding.', onError: ({ error }) => { failed = true; console.error(String(error)); },
});
for await (const part of answer.fullStream) if (['tool-call', 'tool-error', 'error'].includes(part.type)) console.log(part.type, JSON.stringify(part.input ?? null), String(part.error ?? ''));
process.exit(failed ? 1 : 0);
