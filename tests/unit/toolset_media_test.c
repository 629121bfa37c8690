/* SPDX-License-Identifier: Apache-2.0 */
/* What bytes are: an image, a document, sound, other data, or text. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "toolset/media.h"
#include "base/guards.h"

#define DATA "application/octet-stream"

/* In memory of its own size: a sanitizer sees one byte too far. */
static const char *type_of(const void *bytes, size_t len, bool whole)
{
    void *exact = malloc(len + (len == 0));
    const char *type;

    assert_non_null(exact);
    memcpy(exact, bytes, len);
    type = media_type(exact, len, whole);
    free(exact);
    return type;
}

static void assert_type(const void *bytes, size_t len, bool whole, const char *expected)
{
    const char *type = type_of(bytes, len, whole);

    if (expected)
        assert_non_null(type);
    if (expected)
        assert_string_equal(type, expected);
    else
        assert_null(type);
}

#define TYPE(bytes, expected)                                                                      \
    do {                                                                                           \
        assert_type(bytes, sizeof(bytes) - 1, true, expected);                                     \
        assert_type(bytes, sizeof(bytes) - 1, false, expected);                                    \
    } while (0)

#define PNG  "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1"
#define JPEG "\xff\xd8\xff\xe0\0\x10JFIF\0"
#define GIF7 "GIF87a\1\0\1\0\x80\0\0"
#define GIF9 "GIF89a\1\0\1\0\x80\0\0"
#define WEBP "RIFF\x24\0\0\0WEBPVP8 "
#define WAV  "RIFF\x24\0\0\0WAVEfmt "
#define MP3  "ID3\3\0\0\0\0\0\x23TSSE"
#define OGG  "OggS\0\2\0\0\0\0"

static void a_signature_tells_what_data_are(void **state)
{
    (void)state;
    TYPE(PNG, "image/png");
    TYPE(JPEG, "image/jpeg");
    TYPE(GIF7, "image/gif");
    TYPE(GIF9, "image/gif");
    TYPE(WEBP, "image/webp");
    TYPE(WAV, "audio/wav");
    TYPE(MP3, "audio/mpeg");
    TYPE(OGG, "audio/ogg");
    TYPE("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "application/pdf");
}

static void a_pdf_without_any_odd_byte_is_one_all_the_same(void **state)
{
    (void)state;
    TYPE("%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\n", "application/pdf");
}

static void a_part_of_a_signature_is_none(void **state)
{
    static const struct {
        const char *bytes;
        size_t len, signature; /* that many bytes of it are the signature */
        const char *type;
    } whole[] = {
        {PNG, sizeof PNG - 1, 8, "image/png"},     {JPEG, sizeof JPEG - 1, 3, "image/jpeg"},
        {GIF7, sizeof GIF7 - 1, 6, "image/gif"},   {GIF9, sizeof GIF9 - 1, 6, "image/gif"},
        {WEBP, sizeof WEBP - 1, 12, "image/webp"}, {WAV, sizeof WAV - 1, 12, "audio/wav"},
        {MP3, sizeof MP3 - 1, 3, "audio/mpeg"},    {OGG, sizeof OGG - 1, 4, "audio/ogg"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(whole); i++)
        for (size_t len = 0; len <= whole[i].len; len++) {
            const char *type = type_of(whole[i].bytes, len, false);

            if (len < whole[i].signature && type)
                assert_string_equal(type, DATA);
            if (len >= whole[i].signature && type)
                assert_string_equal(type, whole[i].type);
            if (len == whole[i].len)
                assert_non_null(type);
        }
}

static void a_text_that_begins_as_data_do_is_a_text(void **state)
{
    (void)state;
    TYPE("ID3 tags are found in MP3 files.\n", NULL);
    TYPE("GIF89a is a format of 1989.\n", NULL);
    TYPE("RIFF and OggS are containers.\n", NULL);
    TYPE("RIFF1234WAVE", NULL);
}

static void another_riff_file_is_data(void **state)
{
    (void)state;
    TYPE("RIFF\x24\0\0\0AVI LIST", DATA);
    TYPE("RIFF\x24\0\0\0WEB", DATA);
}

static void an_empty_file_is_a_text(void **state)
{
    (void)state;
    assert_null(media_type(NULL, 0, true));
    TYPE("", NULL);
}

static void utf8_is_a_text_and_so_is_an_svg(void **state)
{
    (void)state;
    TYPE("a\n", NULL);
    TYPE("caf\u00e9 \u20ac \U0001F600\r\n\t\x1b[1m", NULL);
    TYPE("<svg xmlns=\"http://www.w3.org/2000/svg\"/>\n", NULL);
    TYPE("\xEF\xBB\xBF"
         "with a byte order mark",
         NULL);
}

static void a_nul_or_a_bad_byte_makes_it_data(void **state)
{
    (void)state;
    TYPE("a\0b", DATA);
    TYPE("\0", DATA);
    TYPE("a\xff", DATA);
    TYPE("caf\xe9 in Latin-1", DATA);
    TYPE("\xed\xa0\x80 a surrogate", DATA);
    TYPE("\xff\xfeh\0i\0", DATA);
}

static void a_character_that_is_cut_at_the_end_is_no_bad_one(void **state)
{
    static const char text[] = "a\U0001F600";

    (void)state;
    for (size_t len = 2; len < sizeof text - 1; len++) {
        assert_type(text, len, false, NULL);
        assert_type(text, len, true, DATA);
    }
    assert_type("a\xc3(", 3, false, DATA); /* nothing can make it whole any more */
}

static void images_are_told_from_other_data(void **state)
{
    (void)state;
    assert_true(media_is_image("image/png"));
    assert_true(media_is_image("image/webp"));
    assert_false(media_is_image("application/pdf"));
    assert_false(media_is_image("audio/wav"));
    assert_false(media_is_image(DATA));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signature_tells_what_data_are),
        cmocka_unit_test(a_pdf_without_any_odd_byte_is_one_all_the_same),
        cmocka_unit_test(a_part_of_a_signature_is_none),
        cmocka_unit_test(a_text_that_begins_as_data_do_is_a_text),
        cmocka_unit_test(another_riff_file_is_data),
        cmocka_unit_test(an_empty_file_is_a_text),
        cmocka_unit_test(utf8_is_a_text_and_so_is_an_svg),
        cmocka_unit_test(a_nul_or_a_bad_byte_makes_it_data),
        cmocka_unit_test(a_character_that_is_cut_at_the_end_is_no_bad_one),
        cmocka_unit_test(images_are_told_from_other_data),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
