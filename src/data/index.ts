export { type LabelledImages, type LoadMnistOptions, loadMnist, type Mnist } from "./mnist";
export { readSafetensors, type SafetensorsFile, type SafetensorsTensor, writeSafetensors } from "./safetensors";
