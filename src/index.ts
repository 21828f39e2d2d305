/**
 * Ringlet as a library: tensors with autograd on WebGPU, PyTorch's modules and optimizers in camelCase, and collectives
 * between browser tabs.
 *
 *     import { nn, optim, dist, tensor } from "ringlet";
 */
export * as data from "./data";
export * as dist from "./distributed";
export { Device, requestDevice } from "./gpu";
export * as nn from "./nn";
export * as optim from "./optim";
export * from "./tensor";
