/** The ring in three colours, with the name. */
export function Logo() {
  return (
    <a class="logo" href="/" aria-label="Ringlet, start page">
      <svg viewBox="0 0 32 32" aria-hidden="true" focusable="false">
        <g fill="none" stroke-width="5" stroke-linecap="round">
          <path class="logoArc0" d="M18.2 5.2A11 11 0 0126.9 16.9" />
          <path class="logoArc1" d="M24 23.5A11 11 0 0110.6 25.6" />
          <path class="logoArc2" d="M6.1 20.8A11 11 0 0111.8 5.8" />
        </g>
      </svg>
      <span>Ringlet</span>
    </a>
  );
}
