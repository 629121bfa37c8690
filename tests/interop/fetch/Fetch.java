// SPDX-License-Identifier: Apache-2.0

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;

/** Fetches URLs as any Java program does; the certificates are those of javax.net.ssl.trustStore. */
class Fetch {
    public static void main(String[] urls) {
        HttpClient client = HttpClient.newHttpClient();
        for (String url : urls) {
            try {
                System.out.print(client.send(HttpRequest.newBuilder(URI.create(url)).build(), BodyHandlers.ofString()).body());
            } catch (Exception e) {
                System.err.println(e);
                System.exit(1);
            }
        }
        System.exit(0);
    }
}
