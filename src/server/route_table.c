// SPDX-License-Identifier: MIT
// Every endpoint of the server, one row each. docs/internals/SERVER.md says what a handler does.
#include "server/route.h"

enum { KEYED = DGM_ROUTE_KEY | DGM_ROUTE_LIMITED, KEY = DGM_ROUTE_KEY };

static const dgm_route table[] = {
    {"GET", "/", DGM_API_PAGE, DGM_ROUTE_WEB, dgm_page_get, "The page that translates"},
    {"POST", "/", DGM_API_PAGE, KEYED | DGM_ROUTE_WEB, dgm_page_post, "Its form, for browsers without scripts"},
    {"GET", "/status", DGM_API_PAGE, DGM_ROUTE_WEB, dgm_page_status_get, "How the server is doing, as a page"},
    {"POST", "/translate", DGM_API_LIBRE, KEYED, dgm_libre_translate, "Translate text from one language to another"},
    {"POST", "/detect", DGM_API_LIBRE, KEYED, dgm_libre_detect, "Detect the language of a text"},
    {"GET", "/languages", DGM_API_LIBRE, 0, dgm_libre_languages, "List the languages that can be translated"},
    {"POST", "/translate_file", DGM_API_LIBRE, KEYED | DGM_ROUTE_FILE, dgm_libre_translate_file,
     "Translate a file from one language to another"},
    {"GET", "/download_file/**", DGM_API_LIBRE, DGM_ROUTE_LIMITED, dgm_libre_download_file, "Fetch a translated file"},
    {"GET", "/frontend/settings", DGM_API_LIBRE, 0, dgm_libre_settings, "Settings for a page that uses this server"},
    {"POST", "/frontend/settings", DGM_API_LIBRE, 0, dgm_libre_settings, "The same"},
    {"POST", "/suggest", DGM_API_LIBRE, DGM_ROUTE_LIMITED, dgm_libre_suggest, "Suggest a better translation"},
    {"GET", "/health", DGM_API_LIBRE, 0, dgm_libre_health, "Is the server there?"},
    {"GET", "/spec", DGM_API_LIBRE, 0, dgm_libre_spec, "LibreTranslate's API as Swagger 2.0"},
    {"GET", "/metrics", DGM_API_LIBRE, DGM_ROUTE_METRICS, dgm_metrics_answer, "Numbers for Prometheus"},
    {"POST", "/v1/translate", DGM_API_V1, KEYED, dgm_v1_translate, "Translate texts with all that the engine has"},
    {"POST", "/v1/bulk", DGM_API_V1, KEYED | DGM_ROUTE_FILE, dgm_v1_bulk,
     "Translate JSON lines, answered as they are ready"},
    {"POST", "/v1/detect", DGM_API_V1, KEYED, dgm_v1_detect, "Detect the languages of texts"},
    {"GET", "/v1/languages", DGM_API_V1, 0, dgm_v1_languages, "List languages"},
    {"GET", "/v1/models", DGM_API_V1, 0, dgm_v1_models, "List models"},
    {"GET", "/v1/settings", DGM_API_V1, 0, dgm_v1_settings, "List what \"settings\" of a request may hold"},
    {"POST", "/v1/document", DGM_API_V1, KEYED | DGM_ROUTE_FILE, dgm_v1_document,
     "Translate a file, answered with the file"},
    {"GET", "/v1/stats", DGM_API_V1, 0, dgm_v1_stats, "Numbers of this moment and since the start"},
    {"GET", "/v1/openapi.json", DGM_API_V1, 0, dgm_v1_openapi, "This document"},
    {"POST", "/v2/translate", DGM_API_DEEPL, KEYED, dgm_deepl_translate, "Translate texts"},
    {"GET", "/v2/languages", DGM_API_DEEPL, KEY, dgm_deepl_languages, "List languages"},
    {"POST", "/v2/languages", DGM_API_DEEPL, KEY, dgm_deepl_languages, "The same"},
    {"GET", "/v2/usage", DGM_API_DEEPL, KEY, dgm_deepl_usage, "Characters that the key has used this month"},
    {"POST", "/v2/usage", DGM_API_DEEPL, KEY, dgm_deepl_usage, "The same"},
    {"POST", "/v2/document", DGM_API_DEEPL, KEYED | DGM_ROUTE_FILE, dgm_deepl_upload, "Upload a document"},
    {"POST", "/v2/document/*", DGM_API_DEEPL, KEY, dgm_deepl_document_status, "How far a document is"},
    {"GET", "/v2/document/*", DGM_API_DEEPL, KEY, dgm_deepl_document_status, "The same"},
    {"POST", "/v2/document/*/result", DGM_API_DEEPL, KEY, dgm_deepl_document_result, "Fetch a document, once"},
    {"GET", "/v2/document/*/result", DGM_API_DEEPL, KEY, dgm_deepl_document_result, "The same"},
    {"GET", "/v2/glossary-language-pairs", DGM_API_DEEPL, KEY, dgm_deepl_glossary_pairs,
     "List languages that glossaries may have"},
    {"GET", "/v2/glossaries", DGM_API_DEEPL, KEY, dgm_deepl_glossary_list, "List glossaries"},
    {"POST", "/v2/glossaries", DGM_API_DEEPL, KEYED | DGM_ROUTE_FILE, dgm_deepl_glossary_create, "Make a glossary"},
    {"GET", "/v2/glossaries/*", DGM_API_DEEPL, KEY, dgm_deepl_glossary_get, "Describe a glossary"},
    {"DELETE", "/v2/glossaries/*", DGM_API_DEEPL, KEY, dgm_deepl_glossary_delete, "Remove a glossary"},
    {"GET", "/v2/glossaries/*/entries", DGM_API_DEEPL, KEY, dgm_deepl_glossary_entries, "Terms of a glossary"},
    {"GET", "/v3/glossaries", DGM_API_DEEPL, KEY, dgm_deepl_glossary_list, "List glossaries of several directions"},
    {"POST", "/v3/glossaries", DGM_API_DEEPL, KEYED | DGM_ROUTE_FILE, dgm_deepl_glossary_create,
     "Make a glossary of several directions"},
    {"GET", "/v3/glossaries/*", DGM_API_DEEPL, KEY, dgm_deepl_glossary_get, "Describe a glossary"},
    {"PATCH", "/v3/glossaries/*", DGM_API_DEEPL, KEYED | DGM_ROUTE_FILE, dgm_deepl_glossary_patch,
     "Give a glossary another name or further terms"},
    {"DELETE", "/v3/glossaries/*", DGM_API_DEEPL, KEY, dgm_deepl_glossary_delete, "Remove a glossary"},
    {"GET", "/v3/glossaries/*/entries", DGM_API_DEEPL, KEY, dgm_deepl_dictionary_entries, "Terms of one direction"},
    {"PUT", "/v3/glossaries/*/dictionaries", DGM_API_DEEPL, KEYED | DGM_ROUTE_FILE, dgm_deepl_dictionary_put,
     "Replace the terms of one direction"},
    {"DELETE", "/v3/glossaries/*/dictionaries", DGM_API_DEEPL, KEY, dgm_deepl_dictionary_delete,
     "Remove the terms of one direction"},
};

const dgm_route *dgm_route_at(size_t index)
{
    return index < sizeof table / sizeof table[0] ? &table[index] : NULL;
}
