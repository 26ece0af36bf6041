// Counts o200k_base tokens of standard input, with the ranks that ship inside js-tiktoken.
import { Tiktoken } from 'js-tiktoken/lite';
import ranks from 'js-tiktoken/ranks/o200k_base';
let text = '';
for await (const chunk of process.stdin) text += chunk;
console.log(new Tiktoken(ranks).encode(text, [], []).length);
