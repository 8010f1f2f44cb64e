/** @file The page: reads the form, runs the product, shows what came of it. */
import { DeviceError, DisposedError } from "tilewright";
import { factsOf, PageDevice, whyNotBetter } from "./device.ts";
import {
  activationChoices,
  type Choices,
  type FunctionChoice,
  multiply,
  type Outcome,
  transformChoices,
  tune,
  typeChoices,
  type Watching,
} from "./product.ts";

function element<T extends HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}

const form = element<HTMLFormElement>("form");
const typesSelect = element<HTMLSelectElement>("types");
const transformSelect = element<HTMLSelectElement>("transform");
const activationSelect = element<HTMLSelectElement>("activation");
const deviceSelect = element<HTMLSelectElement>("device");
const status = element("status");
const bar = element<HTMLProgressElement>("bar");
const pageDevice = new PageDevice();
let running: AbortController | undefined;

function fill(select: HTMLSelectElement, names: readonly string[]): void {
  select.replaceChildren(...names.map((name, i) => new Option(name, String(i))));
}

fill(
  typesSelect,
  typeChoices.map(({ name }) => name),
);
fill(
  transformSelect,
  transformChoices.map(({ name }) => name),
);
fill(
  activationSelect,
  activationChoices.map(({ name }) => name),
);

/** Functions that integers have not are not to be chosen for them. */
function offerFunctions(): void {
  const integers = typeChoices[Number(typesSelect.value)]!.operand.class !== "float";
  const offer = (select: HTMLSelectElement, choices: readonly FunctionChoice[]): void => {
    choices.forEach(({ floats }, i) => {
      select.options[i]!.disabled = integers && floats === true;
    });
    if (select.selectedOptions[0]?.disabled === true) select.value = "0";
  };
  offer(transformSelect, transformChoices);
  offer(activationSelect, activationChoices);
}

function choices(): Choices {
  const size = (id: string): number => element<HTMLInputElement>(id).valueAsNumber;
  return {
    m: size("m"),
    n: size("n"),
    k: size("k"),
    types: typeChoices[Number(typesSelect.value)]!,
    transposed: element<HTMLSelectElement>("order").value === "t",
    transform: transformChoices[Number(transformSelect.value)]!,
    activation: activationChoices[Number(activationSelect.value)]!,
    bias: element<HTMLInputElement>("bias").checked,
  };
}

function say(text: string, share: number): void {
  status.textContent = text;
  bar.value = share;
}

function show(id: string, text: string | undefined): void {
  element(id).hidden = text === undefined;
  element(id).textContent = text ?? "";
}

function rateOf(operations: number): string {
  const [scale, prefix] = operations >= 1e12 ? [1e12, "T"] : operations >= 1e8 ? [1e9, "G"] : [1e6, "M"];
  return `${(operations / scale).toPrecision(3)} ${prefix}FLOP/s`;
}

function showOutcome(outcome: Outcome, { m, n, k }: Choices): void {
  const { seconds, deviation, right, rows, route, text } = outcome;
  element("time").textContent =
    seconds >= 1 ? `${seconds.toFixed(2)} s` : `${(seconds * 1000).toPrecision(3)} ms`;
  element("rate").textContent = rateOf((2 * m * n * k) / seconds);
  element("deviation").textContent = deviation === 0 ? "0" : deviation.toExponential(1);
  const verdict = element("verdict");
  verdict.textContent = right ? "right" : "WRONG";
  verdict.className = right ? "good" : "bad";
  verdict.title = `${rows} rows compared with sums in double precision`;
  const lines = route.split("\n").map((line) => {
    const shown = document.createElement("div");
    shown.textContent = line;
    return shown;
  });
  element("route").replaceChildren(...lines);
  element("text").textContent = text;
  element("lines").textContent = `${text.split("\n").length} lines`;
  element<HTMLButtonElement>("copy").disabled = text === "";
}

async function openDevice(): ReturnType<PageDevice["open"]> {
  const device = await pageDevice.open(deviceSelect.value);
  const facts = factsOf(device).flatMap(([name, value]) => {
    const [term, detail] = [document.createElement("dt"), document.createElement("dd")];
    [term.textContent, detail.textContent] = [name, value];
    return [term, detail];
  });
  element("facts").replaceChildren(...facts);
  element("language").textContent = device.kind === "webgpu" ? "WGSL" : "JavaScript";
  show("notice", whyNotBetter(device));
  return device;
}

/** Does one thing at a time. What goes wrong is shown, and the page can go on. */
async function work(action: (watching: Watching) => Promise<string>): Promise<void> {
  if (running !== undefined) return;
  const stopping = new AbortController();
  running = stopping;
  busy(true);
  show("error", undefined);
  try {
    say(await action({ signal: stopping.signal, onProgress: say }), 1);
  } catch (error) {
    if (stopping.signal.aborted) say("Stopped.", 0);
    else fail(error);
  } finally {
    running = undefined;
    busy(false);
  }
}

function busy(on: boolean): void {
  form.ariaBusy = String(on);
  for (const id of ["run", "tune"]) element<HTMLButtonElement>(id).disabled = on;
  element<HTMLButtonElement>("stop").disabled = !on;
}

function fail(error: unknown): void {
  const lost = error instanceof DeviceError || error instanceof DisposedError;
  if (lost) pageDevice.close();
  const message = error instanceof Error ? error.message : String(error);
  show("error", lost ? `${message}\nThe next product opens the device anew.` : message);
  say("That did not work; the reason is below.", 0);
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const chosen = choices();
  void work(async (watching) => {
    showOutcome(await multiply(await openDevice(), chosen, watching), chosen);
    return "Done.";
  });
});

element("tune").addEventListener("click", () => {
  if (!form.reportValidity()) return;
  const chosen = choices();
  void work(async (watching) => {
    const device = await openDevice();
    const found = await tune(device, chosen, watching);
    showOutcome(await multiply(device, chosen, watching), chosen);
    return found;
  });
});

element("stop").addEventListener("click", () => running?.abort());
element("copy").addEventListener("click", () => {
  void navigator.clipboard?.writeText(element("text").textContent ?? "");
});
typesSelect.addEventListener("change", offerFunctions);
deviceSelect.addEventListener("change", () => {
  void work(async () => {
    await openDevice();
    return "Ready.";
  });
});
void work(async () => {
  const device = await openDevice();
  // The simulator would take long for what a GPU does in a moment.
  if (device.kind === "simulator")
    for (const id of ["m", "n", "k"]) element<HTMLInputElement>(id).value = "48";
  return "Ready.";
});
