/** WebGPU's guaranteed `maxComputeWorkgroupsPerDimension`. */
export const maxWorkgroups = 65_535;

export type Grid = readonly [x: number, y: number, z: number];

/**
 * Spreads a number of workgroups over the three dimensions so that none passes 65,535. The grid may hold a few more
 * workgroups than asked: a kernel computes its index as x + X * (y + Y * z), with X and Y the grid's size, and returns
 * when it is past its end.
 */
export function spread(workgroups: number): Grid {
  if (workgroups <= maxWorkgroups) return [workgroups, 1, 1];
  const y = Math.ceil(workgroups / maxWorkgroups);
  if (y <= maxWorkgroups) return [Math.ceil(workgroups / y), y, 1];
  const z = Math.ceil(y / maxWorkgroups);
  const rows = Math.ceil(y / z);
  return [Math.ceil(workgroups / (rows * z)), rows, z];
}
