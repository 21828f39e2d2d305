import type { Access, Grid, Kernel } from "../gpu";
import { isNarrow } from "./dtype";
import type { BufferValue, KernelCall } from "./operators/table";
import { encodeWord, type PlacedBinding, type Step, uniformWords } from "./plan";
import { byteSize } from "./plannedRoots";

/**
 * A kernel call as a plan holds it.
 * @param kernel what reads the operands as they are stored.
 * @param placed where its bindings lie.
 * @param held the bytes of scratch memory that hold values then.
 */
export function planStep(
  { shader, bindings, uniforms, grid, work }: KernelCall,
  kernel: Kernel,
  placed: readonly PlacedBinding[],
  held: number,
): Step {
  const block = new Uint32Array(uniformWords);
  const patches: Step["patches"][number][] = [];
  if (uniforms.length > uniformWords)
    throw new Error(`The kernel ${shader.name} has ${uniforms.length} uniform words; a block holds ${uniformWords}.`);
  for (const [word, uniform] of uniforms.entries()) {
    if (typeof uniform === "number") block[word] = uniform;
    else if ("f32" in uniform) block[word] = encodeWord(uniform.f32, "float32");
    else if ("i32" in uniform) block[word] = encodeWord(uniform.i32, "int32");
    else if ("literal" in uniform.scalar) block[word] = encodeWord(uniform.scalar.literal, uniform.dtype);
    else patches.push({ word, ...uniform.scalar, dtype: uniform.dtype });
  }
  return {
    kernel,
    bindings: placed,
    uniforms: block,
    patches,
    grid: checkedGrid(grid, shader.name),
    work,
    held,
    ...operandsOf(bindings, shader.bindings),
    slices: [],
    bindGroup: null,
  };
}

function operandsOf(bindings: readonly BufferValue[], accesses: readonly Access[]): Pick<Step, "reads" | "writes"> {
  const of = (access: Access) =>
    bindings
      .filter((_, i) => accesses[i] === access)
      .map(({ shape, dtype: computed, root }) => {
        const dtype = isNarrow(root.dtype) ? root.dtype : computed;
        return { shape, dtype, bytes: Math.min(byteSize(shape, dtype), root.bytes) };
      });
  return { reads: of("read"), writes: of("write") };
}

function checkedGrid(grid: Grid, kernel: string): Grid {
  if (Math.max(...grid) > 65_535)
    throw new Error(`The kernel ${kernel} asks for ${grid.join(" x ")} workgroups; a dimension takes at most 65535.`);
  return grid;
}
