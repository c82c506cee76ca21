// As much of a document as the adapters ask for: elements in order, found by tag, id, class and attributes.

/** `page({title, og, elements: [["h1", {class: "entry-title"}, "text"], …]})` */
export function page({ title = "", og, elements = [] } = {}) {
  const all = [...(og === undefined ? [] : [["meta", { property: "og:title", content: og }, ""]]), ...elements].map(element);
  return {
    title,
    visibilityState: "visible",
    querySelector: (selector) => find(all, selector)[0] ?? null,
    querySelectorAll: (selector) => find(all, selector),
  };
}

/** Links as a page lists them. */
export function links(...pairs) {
  return pairs.map(([href, text]) => ["a", { href }, text]);
}

function element([tag, attributes, content]) {
  const inner = Array.isArray(content) ? content.map(element) : [];
  return {
    tag,
    attributes,
    inner,
    textContent: Array.isArray(content) ? inner.map((each) => each.textContent).join("") : content,
    getAttribute: (name) => attributes[name] ?? null,
    querySelectorAll: (selector) => find(inner, selector),
  };
}

function find(elements, selector) {
  return elements.flatMap((each) => [...(matches(each, selector) ? [each] : []), ...find(each.inner, selector)]);
}

function matches({ tag, attributes }, selectors) {
  return selectors.split(",").some((selector) => {
    const [, name, id, classes, conditions] = selector.trim().match(/^([a-z0-9]*)(?:#([\w-]+))?((?:\.[\w-]+)*)((?:\[[^\]]+\])*)$/);
    return (!name || tag === name) && (!id || attributes.id === id) &&
      classes.split(".").filter(Boolean).every((each) => (attributes.class ?? "").split(" ").includes(each)) &&
      [...conditions.matchAll(/\[([\w-]+)(?:="([^"]*)")?\]/g)].every(([, key, value]) => key in attributes && (value === undefined || attributes[key] === value));
  });
}
