// A folder of static files. Nothing for chaski: its worker and its module of WebAssembly are found.
export default { output: "export" };
