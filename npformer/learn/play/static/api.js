// What the page asks the server, and the events that come by themselves.

const token = new URLSearchParams(location.search).get("token") ?? "";

export async function post(name, body = {}) {
  const response = await fetch(`/api/${name}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Token": token },
    body: JSON.stringify(body),
  }).catch(() => {
    throw new Error("npformer play does not answer; start it again, and this page goes on");
  });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.error ?? `the server answered ${response.status}`);
  return answer;
}

export const ask = (run, question, more = {}) => post("ask", { run, question, ...more });

// Events of all runs. The browser connects again by itself; after a refusal it does not, so we do.
export function listen(onEvent, onState) {
  const source = new EventSource(`/events?token=${encodeURIComponent(token)}`);
  source.onopen = () => onState(true);
  source.onmessage = (message) => onEvent(JSON.parse(message.data));
  source.onerror = () => {
    onState(false);
    if (source.readyState !== EventSource.CLOSED) return;
    source.close();
    setTimeout(() => listen(onEvent, onState), 1000);
  };
}
