import { type Plugin, build, defineConfig } from "vite";

const optimization = { inlineConst: { mode: "all", pass: 3 } } as const; // a constant is shorter than its name
const oxc = { jsx: { runtime: "classic", pragma: "h", pragmaFrag: "Fragment" } } as const;

/**
 * The same explorer as modules of their own: of a file that holds its data, and of the widget of a
 * notebook, which exports how it is drawn. Each has one door alone.
 */
function others(): Plugin {
  let outDir = "";
  return {
    name: "others",
    apply: "build",
    configResolved: (config) => void (outDir = config.build.outDir),
    async closeBundle() {
      for (const name of ["file", "widget"]) {
        await build({
          configFile: false,
          oxc,
          logLevel: "error",
          build: {
            outDir,
            emptyOutDir: false,
            target: "es2022",
            copyPublicDir: false,
            modulePreload: false,
            rollupOptions: {
              input: `src/${name}.ts`,
              optimization,
              preserveEntrySignatures: "strict",
              output: { entryFileNames: "[name].js" },
            },
          },
        });
      }
    },
  };
}

// The page is committed with the package, so its files have stable names and no hashes.
export default defineConfig({
  base: "./",
  oxc,
  plugins: [others()],
  build: {
    outDir: "../src/attlas/explorer/page",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    assetsInlineLimit: 0,
    rollupOptions: {
      optimization,
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
