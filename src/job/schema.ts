import { messageOf } from "../base/messageOf";
/**
 * Shapes of JSON from outside: each checks a value and gives it back with its type, so that a message's type and its
 * check are one thing. A check throws a SchemaError naming the field.
 */
export interface Schema<Value> {
  check(value: unknown, where: string): Value;
}

export type Infer<S> = S extends Schema<infer Value> ? Value : never;

export class SchemaError extends Error {
  override readonly name = "SchemaError";
}

function wrong(where: string, expected: string): SchemaError {
  return new SchemaError(`${where} must be ${expected}`);
}

function schema<Value>(check: (value: unknown, where: string) => Value): Schema<Value> {
  return { check };
}

export const boolean = schema<boolean>((value, where) => {
  if (typeof value !== "boolean") throw wrong(where, "true or false");
  return value;
});

export function integer(least: number, most: number): Schema<number> {
  return schema((value, where) => {
    if (typeof value !== "number" || !Number.isInteger(value) || value < least || value > most)
      throw wrong(where, `a whole number from ${least} to ${most}`);
    return value;
  });
}

/** A finite number of at least 0. */
export const amount = schema<number>((value, where) => {
  if (typeof value !== "number" || !Number.isFinite(value) || value < 0) throw wrong(where, "a number of at least 0");
  return value;
});

/** A number; null stands for NaN and the infinities, which JSON doesn't have. */
export const measured = schema<number>((value, where) => {
  if (value === null) return Number.NaN;
  if (typeof value !== "number") throw wrong(where, "a number or null");
  return value;
});

export function text(most: number): Schema<string> {
  return schema((value, where) => {
    if (typeof value !== "string" || value.length > most) throw wrong(where, `a text of at most ${most} characters`);
    return value;
  });
}

export function matching<Value extends string>(
  holds: (value: string) => value is Value,
  expected: string,
): Schema<Value> {
  return schema((value, where) => {
    if (typeof value !== "string" || !holds(value)) throw wrong(where, expected);
    return value;
  });
}

export function oneOf<const Names extends readonly string[]>(...names: Names): Schema<Names[number]> {
  return schema((value, where) => {
    const found = names.find((name) => name === value);
    if (found === undefined) throw wrong(where, `one of ${names.join(", ")}`);
    return found;
  });
}

export function nullable<Value>(inner: Schema<Value>): Schema<Value | null> {
  return schema((value, where) => (value === null ? null : inner.check(value, where)));
}

export function list<Value>(inner: Schema<Value>, most: number): Schema<readonly Value[]> {
  return schema((value, where) => {
    if (!Array.isArray(value) || value.length > most) throw wrong(where, `a list of at most ${most}`);
    return value.map((item, index) => inner.check(item, `${where}[${index}]`));
  });
}

/** An object with exactly these fields. */
export function object<Fields extends Record<string, Schema<unknown>>>(
  fields: Fields,
): Schema<{ readonly [Key in keyof Fields]: Infer<Fields[Key]> }> {
  const names = Object.keys(fields);
  return schema((value, where) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) throw wrong(where, "an object");
    const given = new Map<string, unknown>(Object.entries(value));
    for (const name of given.keys()) if (!names.includes(name)) throw new SchemaError(`${where} has no ${name}`);
    const checked = Object.entries(fields).map(([name, field]) => [
      name,
      field.check(given.get(name), `${where}.${name}`),
    ]);
    return Object.fromEntries(checked) as { readonly [Key in keyof Fields]: Infer<Fields[Key]> };
  });
}

/** A value whose check is a parser that throws sentences of its own. */
export function parsed<Value>(parse: (json: unknown) => Value): Schema<Value> {
  return schema((value, where) => {
    try {
      return parse(value);
    } catch (error) {
      throw new SchemaError(`${where} is wrong (${messageOf(error)})`);
    }
  });
}
