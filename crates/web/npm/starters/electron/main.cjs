// A window whose page is of an origin of its own, app://chaski, so that it has storage, locks and WebGPU: pages of file: have not.

const { BrowserWindow, app, protocol } = require("electron");
const { answer } = require("./files.cjs");

protocol.registerSchemesAsPrivileged([{ scheme: "app", privileges: { standard: true, secure: true, supportFetchAPI: true, stream: true } }]);

app.whenReady().then(async () => {
  protocol.handle("app", (request) => answer(__dirname, request));
  await new BrowserWindow({ width: 900, height: 700 }).loadURL("app://chaski/index.html");
});
app.on("window-all-closed", () => app.quit());
