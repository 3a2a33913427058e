// Numbers of modules by their order: webpack's own for the container come from the folder's absolute path.
module.exports = { optimization: { moduleIds: "natural" } };
