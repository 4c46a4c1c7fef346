import { type Plugin, build, defineConfig } from "vite";

const oxc = { jsx: { runtime: "classic", pragma: "h", pragmaFrag: "Fragment" } } as const;

/** The widget of a notebook: the same page as one module, which exports how it is drawn. */
function widget(): Plugin {
  let outDir = "";
  return {
    name: "widget",
    apply: "build",
    configResolved: (config) => void (outDir = config.build.outDir),
    async closeBundle() {
      await build({
        configFile: false,
        oxc,
        logLevel: "error",
        build: {
          outDir,
          emptyOutDir: false,
          target: "es2022",
          copyPublicDir: false,
          lib: { entry: "src/widget.ts", formats: ["es"], fileName: () => "widget.js" },
        },
      });
    },
  };
}

// The page is committed with the package, so its files have stable names and no hashes.
export default defineConfig({
  base: "./",
  oxc,
  plugins: [widget()],
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
