/* SPDX-License-Identifier: Apache-2.0 */
/* What a tool answered, as blocks of content. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "mcp/server.h"
#include "base/buffer.h"
#include "toolset/media.h"
#include "wire/base64.h"
#include "base/guards.h"

static json_t *text_block(const char *text, size_t len)
{
    return json_pack("{s:s, s:s%}", "type", "text", "text", text, len);
}

/* "sandbox:///PATH" (RFC 3986, section 3.3); a relative path counts from the working directory. */
static char *sandbox_uri(const char *path)
{
    static const char digits[] = "0123456789ABCDEF";
    struct buffer b = {0};
    char *ret = NULL;

    buffer_add_text(&b, "sandbox://");
    buffer_add_text(&b, path[0] == '/' ? "" : "/");
    for (const char *c = path; *c; c++) {
        const char escaped[] = {'%', digits[(uint8_t)*c >> 4], digits[(uint8_t)*c & 15]};
        bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                     (*c >= '0' && *c <= '9') || strchr("/-._~", *c);

        buffer_add(&b, plain ? c : escaped, plain ? 1 : sizeof escaped);
    }
    return buffer_take(&b, &ret, NULL) == 0 ? ret : NULL;
}

/* Bytes of a file: an image that a client can show, or a resource that it can keep. */
static json_t *bytes_block(const struct atoll_tool_answer *x, const char *path)
{
    _cleanup_free_ char *uri = sandbox_uri(path);
    size_t len = 0;
    _cleanup_free_ char *data = base64_encode(x->bytes, x->n_bytes, &len);

    if (!data)
        return NULL;
    if (media_is_image(x->type))
        return json_pack("{s:s, s:s%, s:s}", "type", "image", "data", data, len, "mimeType",
                         x->type);
    return json_pack("{s:s, s:{s:s, s:s, s:s%}}", "type", "resource", "resource", "uri", uri,
                     "mimeType", x->type, "blob", data, len);
}

/* Without memory a constructor gives NULL, which is refused here. */
static bool add(json_t *content, json_t *block)
{
    return json_array_append_new(content, block) == 0;
}

json_t *mcp_content(const struct atoll_toolset *t, const struct atoll_op *op, const char *path,
                    bool links)
{
    const struct atoll_tool_answer *x = atoll_op_answer(op);
    const struct atoll_exported *exported;
    json_t *content = json_array(), *ret = NULL;
    bool good = add(content, text_block(x->text, x->len));

    if (good && x->bytes)
        good = add(content, bytes_block(x, path ? path : ""));
    for (size_t i = 0; good && links && (exported = atoll_op_exported(op, i)); i++)
        good = add(content, published_link(t, exported));
    if (good)
        ret = json_pack("{s:O, s:b}", "content", content, "isError", (int)x->retry);
    json_decref(content);
    if (ret && x->structured &&
        json_object_set_new(ret, "structuredContent",
                            json_loads(x->structured, JSON_ALLOW_NUL, NULL)) < 0) {
        json_decref(ret);
        return NULL;
    }
    return ret;
}

json_t *mcp_content_failed(const char *text)
{
    return json_pack("{s:[o], s:b}", "content", text_block(text, strlen(text)), "isError", 1);
}
