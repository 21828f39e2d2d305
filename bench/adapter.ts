export interface AdapterDescription {
  readonly vendor: string;
  readonly architecture: string;
  readonly description: string;
  readonly isFallbackAdapter: boolean;
}

export async function describeAdapter(): Promise<AdapterDescription> {
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
  if (!adapter) throw new Error("WebGPU has no adapter here.");
  const { vendor, architecture, description, isFallbackAdapter } = adapter.info;
  return { vendor, architecture, description, isFallbackAdapter };
}
