import { defineConfig } from "vite";

// The page is committed with the package, so its files have stable names and no hashes.
export default defineConfig({
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../src/attlas/explorer/page",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    assetsInlineLimit: 0,
    rollupOptions: {
      output: {
        entryFileNames: "explorer.js",
        assetFileNames: "explorer[extname]",
      },
    },
  },
  // `npm run dev` beside `attlas look RUN --no-browser`, which answers to its own page alone.
  server: {
    proxy: {
      "/api": {
        target: "http://127.0.0.1:8642",
        changeOrigin: true,
        headers: { origin: "http://127.0.0.1:8642" },
      },
    },
  },
});
