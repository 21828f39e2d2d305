/**
 * Breaks a name at its spaces into at most `lines` lines of at most `length` characters; what doesn't fit ends in "…".
 */
export function wrapName(name: string, length: number, lines: number): string[] {
  const wrapped: string[] = [];
  let rest = name.trim();
  while (rest !== "" && wrapped.length < lines - 1) {
    if (rest.length <= length) break;
    const space = rest.lastIndexOf(" ", length);
    if (space <= 0) break;
    wrapped.push(rest.slice(0, space).trimEnd());
    rest = rest.slice(space).trimStart();
  }
  wrapped.push(rest.length > length ? `${rest.slice(0, length - 1).trimEnd()}…` : rest);
  return wrapped;
}
