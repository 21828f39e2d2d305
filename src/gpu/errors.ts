/** The GPU went away (or was destroyed): everything on it is lost, and a new device is needed to go on. */
export class DeviceLostError extends Error {
  override readonly name = "DeviceLostError";
}

/** The GPU could not be had, refused a command, or ran out of memory. */
export class GpuError extends Error {
  override readonly name = "GpuError";
}
