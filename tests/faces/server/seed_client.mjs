// A client of the collector as the seed document has it: `node seed_client.mjs URL TOKEN CAPABILITY TIMES`.
// It knows TypeScript's names and Date.now(), and neither UUIDs nor healkit. It sends its batch TIMES times, as one
// that lost the answers would, and prints each answer.

const [url, token, capability, times] = process.argv.slice(2);

/** @typedef {{taskId?: string, tool: string, args: object, result: unknown, success: boolean, durationMs: number, timestamp: number}} TaskResult */

/** @returns {TaskResult} */
function call(tool, args, run) {
  const timestamp = Date.now();
  const started = performance.now();
  try {
    const result = run(args);
    return { tool, args, result, success: true, durationMs: performance.now() - started, timestamp };
  } catch (error) {
    return { tool, args, result: String(error), success: false, durationMs: performance.now() - started, timestamp };
  }
}

function trace(toolId, tasks, error) {
  const timestamp = Date.now();
  const taskResults = tasks();
  return { toolId, success: error === undefined, error, durationMs: Date.now() - timestamp, timestamp, taskResults };
}

const files = { "notes.txt": "two words" };
const read = ({ path }) => {
  if (!(path in files)) throw new Error(`ENOENT: ${path}`);
  return files[path];
};

const traces = [
  trace(capability, () => [call("fs:read_file", { path: "notes.txt" }, read)]),
  trace("a-tool-that-nobody-knows", () => [call("fs:read_file", { path: "gone" }, read)], "ENOENT: gone"),
  trace(capability, () => []),
];

for (let time = 0; time < Number(times); time++) {
  const answer = await fetch(`${url}/api/traces`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` },
    body: JSON.stringify({ traces }),
  });
  console.log(JSON.stringify({ status: answer.status, ...(await answer.json()) }));
}
