/** Hands bytes or text to the browser as a file to save. */
export function saveFile(name: string, type: string, content: string | Uint8Array<ArrayBuffer>): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const anchor = document.createElement("a");
  anchor.href = url;
  anchor.download = name;
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  // The browser reads the URL after the click returns.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
