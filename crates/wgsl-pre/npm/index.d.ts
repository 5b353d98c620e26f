/** A text without directives and macros, and the origin of its lines. */
export interface Processed {
  readonly text: string;
  /** `file:line` for a line of the text, both counted from one; `undefined` past the end. */
  locate(line: number): string | undefined;
  /** Frees its memory early; otherwise that happens with the object. */
  free(): void;
}

/**
 * Executes the directives of `source`, which errors call `main`. A macro that is null is defined and empty. `files` maps the
 * names of includable files to their texts. Throws an `Error` with the place and the chain of includes.
 */
export function preprocess(
  source: string,
  macros?: Record<string, string | number | boolean | null>,
  files?: Record<string, string>,
): Processed;

/** Renders one of some Jinja templates, by name. Throws an `Error` with the place and the chain of includes. */
export function render(
  templates: Record<string, string>,
  name: string,
  variables?: Record<string, unknown>,
): string;
