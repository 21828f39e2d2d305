export { type LabelledImages, loadMnist, type LoadMnistOptions, type Mnist } from "./mnist";
export { readSafetensors, type SafetensorsFile, type SafetensorsTensor, writeSafetensors } from "./safetensors";
