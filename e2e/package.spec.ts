import { execFileSync, spawnSync } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { expect, test } from "@playwright/test";
import manifest from "../package.json" with { type: "json" };

const program = `import { dist, nn, optim, tensor, type Tensor } from "ringlet";
const model: nn.Module = new nn.Sequential(new nn.Linear(2, 3), new nn.ReLU());
const optimizer = new optim.SGD(model.parameters(), { learningRate: 0.1 });
const output: Tensor = model.forward(tensor([[1, 2]]));
console.log([output.shape.join("x"), optimizer.groups.length, dist.isInitialized()].join(" "));
// @ts-expect-error a module's constructor takes sizes
new nn.Linear("two", 3);
`;

test("the packed package imports in Node, and its types hold under both of TypeScript's module resolutions", async () => {
  const folder = await mkdtemp(join(tmpdir(), "ringlet-package-"));
  try {
    execFileSync("npm", ["pack", "--ignore-scripts", "--pack-destination", folder], { stdio: "pipe" });
    const [archive] = (await readdir(folder)).filter((name) => name.endsWith(".tgz"));
    const modules = join(folder, "node_modules");
    await mkdir(modules);
    execFileSync("tar", ["xzf", join(folder, archive ?? ""), "-C", folder]);
    await cp(join(folder, "package"), join(modules, "ringlet"), { recursive: true });
    for (const dependency of Object.keys(manifest.dependencies)) {
      await mkdir(dirname(join(modules, dependency)), { recursive: true });
      await symlink(resolve("node_modules", dependency), join(modules, dependency));
    }
    await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module" }));
    await writeFile(join(folder, "program.ts"), program);
    for (const [moduleKind, resolution] of [
      ["esnext", "bundler"],
      ["nodenext", "nodenext"],
    ] as const) {
      const args = ["--noEmit", "--strict", "--target", "es2023", "--lib", "es2023,dom", "--module", moduleKind];
      const all = [...args, "--moduleResolution", resolution, "--types", "", "program.ts"];
      const { stdout } = spawnSync(resolve("node_modules/.bin/tsc"), all, { cwd: folder, encoding: "utf8" });
      expect(stdout, resolution).toBe("");
    }
    const javascript = program.replaceAll(/, type Tensor|: nn\.Module|: Tensor|.*Linear\("two".*/g, "");
    await writeFile(join(folder, "program.js"), javascript);
    const printed = execFileSync(process.execPath, ["program.js"], { cwd: folder, encoding: "utf8" });
    expect(printed.trim()).toBe("1x3 1 false");
  } finally {
    await rm(folder, { recursive: true });
  }
});
