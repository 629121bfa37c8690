// SPDX-License-Identifier: Apache-2.0
// Fetches URLs as any Node.js program does; the certificates are those of NODE_EXTRA_CA_CERTS.
for (const url of process.argv.slice(2)) {
  try {
    process.stdout.write(await (await fetch(url)).text());
  } catch (error) {
    console.error(`${error}: ${error.cause}`);
    process.exit(1);
  }
}
