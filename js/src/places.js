// Names of what a page can open, as they stand in its address.

/** Where a tool is: its name and persona, as one text. */
export const toolPlace = (tool, persona) => `${encodeURIComponent(tool)}/${encodeURIComponent(persona)}`;
export const toolOf = (place) => {
  const [tool, persona = "default"] = place.split("/").map(decodeURIComponent);
  return { tool, persona };
};
