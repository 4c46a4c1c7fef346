declare module "*.css?inline" {
  const text: string;
  export default text;
}

declare module "*.html?raw" {
  const text: string;
  export default text;
}
