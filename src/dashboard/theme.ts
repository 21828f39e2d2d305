import { useEffect, useState } from "preact/hooks";

const query = "(prefers-color-scheme: dark)";

/** The colour scheme in use; renders again when it changes. */
export function useColorScheme(): "light" | "dark" {
  const [dark, setDark] = useState(() => window.matchMedia(query).matches);
  useEffect(() => {
    const media = window.matchMedia(query);
    const follow = () => setDark(media.matches);
    media.addEventListener("change", follow);
    return () => media.removeEventListener("change", follow);
  }, []);
  return dark ? "dark" : "light";
}

/** A colour of the style sheet, for canvases. */
export const themeColor = (name: `--${string}`): string =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();
