/** @file Boxes of tensor copies: their place in shared memory, their elements, and the marks they leave in shadow memory. */
import { touchBuffer } from "./access.ts";
import type { TensorBinding } from "./arguments.ts";
import type { SharedArrayFacts } from "./array-facts.ts";
import { laneFault } from "./faults.ts";
import { writeGranuleAsynchronously } from "./shadow.ts";
import type { Warp } from "./state.ts";
import { swizzled } from "./swizzle.ts";

/** Granules of bytes of a shared array. */
export function eachGranule(
  array: SharedArrayFacts,
  address: number,
  bytes: number,
  visit: (granule: number) => void,
): void {
  const last = array.base + ((address + bytes - 1 - array.start) >> array.shift);
  for (let granule = array.base + ((address - array.start) >> array.shift); granule <= last; granule++)
    visit(granule);
}

/** Bytes of a box. */
export function boxBytes(tensor: TensorBinding): number {
  return tensor.map.box.reduce((product, extent) => product * extent, tensor.size);
}

/** The box's part of shared memory; checked. */
export function boxAddress(
  warp: Warp,
  lane: number,
  site: number,
  tensor: TensorBinding,
  array: SharedArrayFacts,
  element: number,
): number {
  const address = array.byteOffset + element * array.size;
  if (warp.block.shadow === undefined) return address;
  const elements = boxBytes(tensor) / array.size;
  if (!(element >= 0 && element + elements <= array.length)) {
    laneFault(
      warp,
      lane,
      site,
      "outOfBounds",
      `a box of ${elements} elements at element ${element} of a shared array of ${array.length}`,
    );
  }
  if (address % 128 !== 0)
    laneFault(
      warp,
      lane,
      site,
      "misaligned",
      `a box at byte ${address} of shared memory, no multiple of 128,`,
    );
  return address;
}

/**
 * Calls `visit` with the byte of the tensor (-1 outside of it) and of shared memory for each element of the box. Of a map of
 * windows the coordinates are followed by the offsets.
 */
export function eachElement(
  tensor: TensorBinding,
  coordinates: readonly number[],
  address: number,
  visit: (global: number, shared: number) => void,
): void {
  const { map, view, size } = tensor;
  if (map.windows) {
    eachOfWindows(tensor, coordinates, address, visit);
    return;
  }
  const counter = map.box.map(() => 0);
  const count = map.box.reduce((product, extent) => product * extent, 1);
  for (let n = 0; n < count; n++) {
    let inside = true;
    let position = 0;
    for (let dimension = 0; dimension < map.rank; dimension++) {
      const coordinate = coordinates[dimension]! + counter[dimension]!;
      if (coordinate < 0 || coordinate >= view.sizes[dimension]!) inside = false;
      position += coordinate * view.strides[dimension]!;
    }
    visit(inside ? view.byteOffset + position * size : -1, swizzled(address + n * size, map.swizzle));
    for (let dimension = 0; dimension < map.rank; dimension++) {
      if (++counter[dimension]! < map.box[dimension]!) break;
      counter[dimension] = 0;
    }
  }
}

/**
 * The box of a map of windows (PTX ISA, "im2col mode"): pixel after pixel within the bounding box of places, at the map's
 * strides, along x, then y, then from image to image; of each the element that lies the offsets away.
 */
function eachOfWindows(
  { map, view, size }: TensorBinding,
  coordinates: readonly number[],
  address: number,
  visit: (global: number, shared: number) => void,
): void {
  const [channels, pixels] = map.box as readonly [number, number];
  const { lower, upper, strides } = view.windows!;
  const [channel, ...rest] = coordinates as readonly number[] & { readonly 0: number };
  let [x, y, image] = rest as [number, number, number];
  const [offsetX, offsetY] = rest.slice(3) as [number, number];
  const [extentC, extentX, extentY, images] = view.sizes as readonly [number, number, number, number];
  const [strideC, strideX, strideY, strideImage] = view.strides as readonly [number, number, number, number];
  for (let pixel = 0; pixel < pixels; pixel++) {
    const [atX, atY] = [x + offsetX, y + offsetY];
    const inside = atX >= 0 && atX < extentX && atY >= 0 && atY < extentY && image >= 0 && image < images;
    const start = atX * strideX + atY * strideY + image * strideImage;
    for (let c = 0; c < channels; c++) {
      const at = channel + c;
      const there = inside && at >= 0 && at < extentC;
      const position = start + at * strideC;
      const element = (pixel * channels + c) * size;
      visit(there ? view.byteOffset + position * size : -1, swizzled(address + element, map.swizzle));
    }
    x += strides[0];
    if (x < extentX + upper[0]) continue;
    x = lower[0];
    y += strides[1];
    if (y < extentY + upper[1]) continue;
    y = lower[1];
    image++;
  }
}

/** Marks the box's elements in the tensor as read on behalf of the thread. */
export function readTensor(
  warp: Warp,
  lane: number,
  site: number,
  tensor: TensorBinding,
  coordinates: readonly number[],
): void {
  const { shadow } = tensor;
  if (shadow === undefined) return;
  eachElement(tensor, coordinates, 0, (global) => {
    if (global >= 0) touchBuffer(warp, lane, site, shadow, global, tensor.size, false);
  });
}

/** Marks the box's elements in the tensor as written at `time` by the engine `id` on behalf of the thread. */
export function writeTensor(
  warp: Warp,
  lane: number,
  site: number,
  tensor: TensorBinding,
  coordinates: readonly number[],
  id: number,
  time: number,
): void {
  const { shadow } = tensor;
  if (shadow === undefined) return;
  eachElement(tensor, coordinates, 0, (global) => {
    if (global < 0) return;
    const last = Math.floor((global + tensor.size - 1) / shadow.granule);
    for (let granule = Math.floor(global / shadow.granule); granule <= last; granule++)
      writeGranuleAsynchronously(
        shadow.page(granule),
        granule & 4095,
        warp.block,
        warp.first + lane,
        id,
        site,
        time,
      );
  });
}

/** One element's bytes. */
export function copyElement(
  target: Uint8Array,
  to: number,
  source: Uint8Array,
  from: number,
  size: number,
): void {
  for (let n = 0; n < size; n++) target[to + n] = source[from + n]!;
}
