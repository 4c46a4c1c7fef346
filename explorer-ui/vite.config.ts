import { type Plugin, build, defineConfig } from "vite";

const optimization = { inlineConst: { mode: "all", pass: 3 } } as const; // a constant is shorter than its name

// Names of the explorer's own classes, which no answer, address, element or reader of a file has.
const own = `
  across alike answerRequest bitmaps bring build came cellAt chosen closer compute correlation dash
  definitions differences directions drawLegend drawMarks drawMinimap drawPictures encoded ends
  enter exported fetchOthers fitted flipped followPlace followed following frameLink fresh handlers
  here isNext jump keyName keySpans late leaf marksOf masked matrixOf meanwhile measured measures
  middleOf mini moved needs numbers observer openText opened openingRow others othersOf
  othersRequest pane pictures pieces plan point pointers preference preview reach reached received
  redraw requested restart resting rightToLeft rowSpans ruler settling shades sharpen sheetRequest
  sheets shows slow starts stopFetching strongest styled thumbnails together tones toward translated
  translating travelled typed wheeled writes
`;
const minify = { mangleProps: { include: new RegExp(`^(${own.trim().split(/\s+/).join("|")})$`) } } as const;
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
              output: { entryFileNames: "[name].js", minify },
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
        minify,
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
