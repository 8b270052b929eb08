// SPDX-License-Identifier: MIT
// Every endpoint of the server, one row each. docs/internals/SERVER.md says what a handler does.
#include "server/route.h"

enum { KEYED = DGM_ROUTE_KEY | DGM_ROUTE_LIMITED };

static const dgm_route table[] = {
    {"POST", "/translate", DGM_API_LIBRE, KEYED, dgm_libre_translate, "Translate text from one language to another"},
    {"POST", "/detect", DGM_API_LIBRE, KEYED, dgm_libre_detect, "Detect the language of a text"},
    {"GET", "/languages", DGM_API_LIBRE, 0, dgm_libre_languages, "List the languages that can be translated"},
    {"POST", "/translate_file", DGM_API_LIBRE, KEYED | DGM_ROUTE_FILE, dgm_libre_translate_file,
     "Translate a file from one language to another"},
    {"GET", "/download_file/*", DGM_API_LIBRE, DGM_ROUTE_LIMITED, dgm_libre_download_file, "Fetch a translated file"},
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
};

const dgm_route *dgm_route_at(size_t index)
{
    return index < sizeof table / sizeof table[0] ? &table[index] : NULL;
}
