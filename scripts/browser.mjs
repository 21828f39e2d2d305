// Finds an installed Chromium, Chrome or Edge; otherwise installs one.
import { execFileSync, spawnSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

const names = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome", "microsoft-edge"];
const places = [
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
  "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
  "C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe",
  "C:\\Program Files (x86)\\Google\\Chrome\\Application\\chrome.exe",
  "C:\\Program Files (x86)\\Microsoft\\Edge\\Application\\msedge.exe",
];

/** Switches under which WebGPU runs on Chromium's software adapter, offline. */
export const softwareGpuArguments = [
  "--no-sandbox",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--enable-unsafe-webgpu",
  "--use-webgpu-adapter=swiftshader",
];

const firefoxNames = ["firefox", "firefox-esr"];
const firefoxPlaces = [
  "/Applications/Firefox.app/Contents/MacOS/firefox",
  "C:\\Program Files\\Mozilla Firefox\\firefox.exe",
];

const isExecutable = (path) => {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
};

/** The path of an installed browser, or undefined. `RINGLET_BROWSER` wins over what is found. */
export const findBrowser = () => find("RINGLET_BROWSER", names, places);

/** The path of an installed Firefox, or undefined. `RINGLET_FIREFOX` wins over what is found. */
export const findFirefox = () => find("RINGLET_FIREFOX", firefoxNames, firefoxPlaces);

function find(variable, names, places) {
  const asked = process.env[variable];
  if (asked) {
    if (!isExecutable(asked)) throw new Error(`${variable} is ${asked}, which is not an executable file.`);
    return asked;
  }
  const onPath = (process.env.PATH ?? "").split(delimiter).flatMap((folder) => names.map((name) => join(folder, name)));
  return [...onPath, ...places].find(isExecutable);
}

const asRoot = (command, args) => (process.getuid?.() === 0 ? [command, args] : ["sudo", ["-n", command, ...args]]);

function installWithApt(...packages) {
  if (spawnSync("apt-get", ["--version"]).status !== 0) return false;
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  for (const args of [
    ["update", "-qq"],
    ["install", "-y", "-qq", ...packages],
  ]) {
    const [command, rest] = asRoot("apt-get", args);
    if (spawnSync(command, rest, { env, stdio: "inherit" }).status !== 0) return false;
  }
  return true;
}

/** The path of a browser, installing Debian's `chromium` where apt works and Playwright's own elsewhere. */
export async function ensureBrowser() {
  const found = findBrowser();
  if (found) return found;
  console.log("No Chromium, Chrome or Edge is installed; installing one for the tests.");
  if (installWithApt("chromium")) {
    const installed = findBrowser();
    if (installed) return installed;
  }
  execFileSync("npx", ["playwright", "install", "chromium"], { stdio: "inherit" });
  const { chromium } = await import("playwright");
  return chromium.executablePath();
}

/** The path of a Firefox, installing Debian's with Mesa's software Vulkan, which its WebGPU needs where there is no GPU. */
export function ensureFirefox() {
  const found = findFirefox();
  if (found) return found;
  console.log("No Firefox is installed; installing one for the tests.");
  const installed = installWithApt("firefox-esr", "mesa-vulkan-drivers") ? findFirefox() : undefined;
  if (installed) return installed;
  throw new Error(
    "The tests need a Firefox and could not install one: install it, or set RINGLET_FIREFOX to its path.",
  );
}
