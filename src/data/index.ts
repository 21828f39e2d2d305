export { type LabelledImages, type LoadMnistOptions, loadMnist, type Mnist } from "./mnist";
export { type NpyArray, readNpy } from "./npy";
export { readNpz } from "./npz";
export { readSafetensors, type SafetensorsFile, type SafetensorsTensor, writeSafetensors } from "./safetensors";
export {
  type ReadableTensor,
  readSafetensorsStream,
  type SafetensorsStream,
  writeSafetensorsStream,
} from "./safetensorsStream";
