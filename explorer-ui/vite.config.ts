import { type Plugin, build, defineConfig } from "vite";

const optimization = { inlineConst: { mode: "all", pass: 3 } } as const; // a constant is shorter than its name

// Names of the explorer's own classes, and of Preact's: none that an answer, a question, an element of the document or
// `window.attlas.door` has.
const own = `
  __html absence accepts across act active addNote adversary alignment alike also answered grown until
  answerRequest apart asked before begin begins beside bitmaps both branches bring build bytes
  came canvas catchUp cell cellAt changed channel choose chooseHead chooseLayer chosen closer
  coarse colour colours column columns componentDidCatch componentDidMount componentDidUpdate
  componentWillMount componentWillReceiveProps componentWillUnmount componentWillUpdate compute
  contextType correlation count current dark dash debounceRendering defaultProps definitions
  diffed differences directions doing draft draw drawLegend drawMarks drawMinimap drawPictures
  each edit editing effects element empty encoded ends enter entropy expect explorer exported
  factor failed far fetched fetchOthers field file fitted flipped follow followed following
  followPlace forced forceUpdate found frame frameLink fresh getChildContext
  getDerivedStateFromError getDerivedStateFromProps getSnapshotBeforeUpdate glance gone group halt
  handlers hatch heading hear held help here holds indices ink isNext isPureReactComponent joined
  jump kept keyName keySpans kind known labels last late latest leaf least leave legend line lines
  listed long look mark marks marksOf masked matrix matrixOf meanwhile measured measures mechanism
  middleOf mini mount moved named near needs next note noted notice number numbers observer offset
  one opened openingRow openText options order orientation other others othersOf othersRequest
  over overviews own paint pan pane panel part partName partner parts path pause peek pending
  phrases picture pictures pieces pin pinned pinnedAt place plan point pointed pointedAt pointers
  preference pressed preview previous problem property props ramp reach reached readers reading
  readout ready received redraw released removeNote repinned request requested restart resting
  restored result retry rightToLeft room rowSpans ruler said samePlace scroll scrolling see
  selected self sentence setState settling shade shades sharpen sheetRequest sheets
  shouldComponentUpdate show shows side sides sign signature sizes slow sorted spacer special
  spoken starts state statistic steps stop stopFetching stretch strongest styled sum summary tab
  taskWords theme threshold thumbnails ticks together toggled tone tones total toward track
  tracked translated translating travelled typed under unmasked unmount unpin unpinned update view
  viewed vnode wait waiting weightsOf wheeled whenChanged wide withSheet word words writes writing
  zoom
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
