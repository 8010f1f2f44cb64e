/** @file Summaries of repeated measurements. */

/** Seconds of one contender on one work item. */
export interface Summary {
  readonly median: number;
  /** Smallest and largest sample. */
  readonly low: number;
  readonly high: number;
  /** Half the distance between the quartiles, as a part of the median. */
  readonly spread: number;
  readonly samples: number;
}

/** The value below which the part `q` of the samples lies, between neighbours by interpolation. */
export function quantile(samples: readonly number[], q: number): number {
  if (samples.length === 0) throw new RangeError("no samples");
  const sorted = [...samples].sort((a, b) => a - b);
  const position = q * (sorted.length - 1);
  const below = Math.floor(position);
  const above = Math.ceil(position);
  return sorted[below]! + (position - below) * (sorted[above]! - sorted[below]!);
}

/** Median, range and spread. */
export function summarise(samples: readonly number[]): Summary {
  const median = quantile(samples, 0.5);
  return {
    median,
    low: Math.min(...samples),
    high: Math.max(...samples),
    spread: (quantile(samples, 0.75) - quantile(samples, 0.25)) / 2 / median,
    samples: samples.length,
  };
}
