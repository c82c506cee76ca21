// panel: what a Reader sees and touches.

function createPanel({ library, webBase, sites, actions }) {
  return { render(state) {}, open() {}, close() {} };
}
