// SPDX-License-Identifier: MIT
// Fields and answers of the endpoints, one row each; see api_table.h.
#include "server/api_table.h"

#include <string.h>

#include "server/shape.h"

#define FLAG "boolean|'0'|'1'|'true'|'false'|integer(0,1)"
#define WORDS "string|[string]"
#define LANGUAGE "string+"
#define COUNT "integer(0,9007199254740991)"

// ---- shapes with names ------------------------------------------------------------------------------

static const dgm_named_shape shapes[] = {
    {"Error", "{error:string}"},
    {"ErrorV1", "{error:string,code:string}"},
    {"ErrorDeepL", "{message:string}"},
    {"Detected", "{confidence:number(0,100),language:string}"},
    {"LanguageName", "{code:string,name:string}"},
    {"Choice", "{text:string,score:number|null}"},
    {"Alternative", "{text:string,score:number|null,alignment?:[[integer]]}"},
    {"Sentence", "{source:string,text:string,gap:string,score:number|null,alternatives?:[#Alternative],"
                 "alignment?:[[integer]],tokens?:[#Choice]}"},
    {"Translation", "{text:string,score?:number|null,alternatives?:[#Choice],sentences?:[#Sentence],flags?:[string],"
                    "notice?:string|null,error:string|null}"},
    {"Answer", "{source:string,target:string,model?:string,pivot?:string|null,"
               "detected?:{language:string,confidence:number(0,1)},translations:[#Translation],"
               "usage?:{characters:integer,sentences:integer,source_tokens:integer,target_tokens:integer},"
               "queued_ms?:number,ms?:number}"},
    {"Setting", "{name:string,kind:string,min?:number,max?:number,values?:[string],default:string|null,help:string}"},
    {"Model", "{name:string,source:[string],target:[string],bytes:integer,parameters:integer,loaded:boolean,"
              "default:boolean}"},
    {"Percentiles", "{p50:number,p90:number,p95:number,p99:number}"},
    {"Stats", "{version:string,uptime_s:number,requests:integer,sentences:integer,latency_ms:#Percentiles,"
              "token_ms:#Percentiles,queue:{queued:integer,running:integer,clients:integer},memory_bytes:integer,"
              "rss_bytes:integer,models:[{name:string,loaded:boolean,bytes:integer}]}"},
    {"DeepLTranslation", "{detected_source_language:string,text:string,billed_characters?:integer,"
                         "model_type_used?:string}"},
    {"DeepLLanguage", "{language:string,name:string,supports_formality?:boolean}"},
    {"DocumentStatus", "{document_id:string,status:'queued'|'translating'|'done'|'error',seconds_remaining?:integer,"
                       "billed_characters?:integer,error_message?:string}"},
    {"Glossary", "{glossary_id:string,name:string,ready:boolean,source_lang:string,target_lang:string,"
                 "entry_count:integer,creation_time:string}"},
    {"Direction", "{source_lang:string,target_lang:string,entry_count:integer}"},
    {"GlossaryV3", "{glossary_id:string,name:string,dictionaries:[#Direction],creation_time:string}"},
    {"Dictionary", "{source_lang:string+,target_lang:string+,entries:string+,entries_format?:'tsv'|'csv'}"},
};

const dgm_named_shape *dgm_named_shape_at(size_t index)
{
    return index < sizeof shapes / sizeof shapes[0] ? &shapes[index] : NULL;
}

// ---- fields: LibreTranslate's -----------------------------------------------------------------------

#define END                                                                                                            \
    {                                                                                                                  \
        .name = NULL                                                                                                   \
    }

static const dgm_api_field libre_translate[] = {
    {"q", "string+|[string;1,100000]", true, false, "Text, or texts"},
    {"source", LANGUAGE, true, false, "Language of the text, or auto"},
    {"target", LANGUAGE, true, false, "Language to translate to"},
    {"format", "'text'|'html'|''|null", false, false, "What the text is"},
    {"alternatives", "number|string|null", false, false, "How many further translations are wanted"},
    {"api_key", "any", false, false, "Key"},
    END};
static const dgm_api_field libre_detect[] = {{"q", "string+|[string;1,100000]", true, false, "Text, or texts"},
                                             {"api_key", "any", false, false, "Key"},
                                             END};
static const dgm_api_field libre_file[] = {{"file", "binary", true, false, "Document"},
                                           {"source", LANGUAGE, true, false, "Language of the text, or auto"},
                                           {"target", LANGUAGE, true, false, "Language to translate to"},
                                           {"columns", "string", false, false, "Of tables, the ones to translate"},
                                           {"api_key", "any", false, false, "Key"},
                                           END};
static const dgm_api_field libre_suggest[] = {{"q", "string", true, false, "Text"},
                                              {"s", "string", true, false, "A better translation"},
                                              {"source", "string", true, false, "Language of the text"},
                                              {"target", "string", true, false, "Language of the translation"},
                                              END};

static const dgm_api_field page_form[] = {{"q", "string", false, false, "Text"},
                                          {"source", "string", false, false, "Language of the text, or auto"},
                                          {"target", "string", false, false, "Language to translate to"},
                                          {"api_key", "string", false, false, "Key"},
                                          END};

// ---- fields: our own --------------------------------------------------------------------------------

static const dgm_api_field v1_translate[] = {
    {"q", "string|[string]", true, false, "Text, or texts; the answer has as many"},
    {"source", "string|null", false, false, "Language of the text, or auto, which is the default"},
    {"target", "string|null", false, false, "Language to translate to; default: the first model's"},
    {"model", "string|null", false, false, "Name of a model (/v1/models)"},
    {"format", "'text'|'html'|null", false, false, "html: tags stay around their words"},
    {"alternatives", "integer(0,63)|null", false, false, "How many further translations are wanted"},
    {"sentences", "boolean|null", false, false, "The answer has its sentences"},
    {"alignment", "boolean|null", false, false, "With links between words"},
    {"word_scores", "boolean|null", false, false, "With tokens and their log-probabilities"},
    {"prefix", "string|[string]|null", false, false, "The translation begins so; of texts of one sentence"},
    {"constraints", "string|[string]|null", false, false, "Demands, as docs/manual/CONSTRAINTS.md has them"},
    {"terms", "[{source:string+,target:string+};0,10000]|null", false, false, "A glossary for this request"},
    {"settings", "{*:number|string|boolean}|null", false, false, "Rows of /v1/settings"},
    {"stream", "boolean|null", false, false, "The answer is server-sent events"},
    {"settle", "integer(0,1000)|null", false, false, "Of a stream: words are told so many tokens later"},
    {"timeout_ms", "integer(1,86400000)|null", false, false, "What is not translated by then fails"},
    {"api_key", "any", false, false, "Key"},
    END};
static const dgm_api_field v1_detect[] = {{"q", "string|[string]", true, false, "Text, or texts"},
                                          {"api_key", "any", false, false, "Key"},
                                          END};
static const dgm_api_field v1_bulk[] = {{"q", "string", true, false, "Text"},
                                        {"id", "any", false, false, "Comes back with the translation"},
                                        {"source", "string", false, true, "Language of the texts, or auto"},
                                        {"target", "string", false, true, "Language to translate to"},
                                        {"model", "string", false, true, "Name of a model"},
                                        {"alternatives", "integer(0,63)", false, true, "Further translations"},
                                        END};
static const dgm_api_field v1_document[] = {{"file", "binary", true, false, "Document"},
                                            {"source", "string", false, false, "Language of the text, or auto"},
                                            {"target", "string", false, false, "Language to translate to"},
                                            {"format", "string", false, false, "What kind of file it is"},
                                            {"columns", "string", false, false, "Of tables, the ones to translate"},
                                            {"terms", "string", false, false, "As of /v1/translate, in JSON"},
                                            END};

// ---- fields: DeepL's --------------------------------------------------------------------------------

#define SOURCE {"source_lang", "string", false, false, "Language of the text; without it, found out"}
#define TARGET {"target_lang", LANGUAGE, true, false, "Language to translate to: DE, EN-US, EN-GB"}
#define FORMALITY                                                                                                      \
    {                                                                                                                  \
        "formality", "'default'|'prefer_more'|'prefer_less'", false, false, "Accepted, without effect"                 \
    }
#define GLOSSARY_IDS                                                                                                   \
    {"glossary_id", "string+", false, false, "Glossary to use; needs source_lang"},                                    \
        {"glossary_ids", "string+|[string+;0,5]", false, false, "Several; where they differ, the first one counts"}
#define DIRECTION(place)                                                                                               \
    {"source_lang", LANGUAGE, true, place, "Language of the terms"},                                                   \
        {"target_lang", LANGUAGE, true, place, "Language of their translations"}
#define ENTRIES                                                                                                        \
    {"entries", "string+", true, false, "Lines of two terms, with a tab or a comma between"},                          \
        {"entries_format", "'tsv'|'csv'", false, false, "Which; default: tsv"}

static const dgm_api_field deepl_translate[] = {
    {"text", "string|[string;1,1000]", true, false, "Text, or texts; a form may have the field several times"},
    SOURCE,
    TARGET,
    {"context", "string", false, false, "Accepted, without effect"},
    {"show_billed_characters", FLAG, false, false, "The answer counts characters"},
    {"split_sentences", "'0'|'1'|'nonewlines'|integer(0,1)", false, false,
     "0: each text is one sentence; 1: line breaks end sentences; nonewlines: they do not"},
    {"preserve_formatting", FLAG, false, false, "Accepted: white space always stays"},
    FORMALITY,
    {"model_type", "'quality_optimized'|'prefer_quality_optimized'|'latency_optimized'", false, false,
     "Accepted: there is one model for each direction"},
    GLOSSARY_IDS,
    {"tag_handling", "'xml'|'html'", false, false, "Tags stay around their words"},
    {"tag_handling_version", "'v1'|'v2'", false, false, "Accepted, without effect"},
    {"outline_detection", FLAG, false, false, "XML: find out which elements are texts by themselves"},
    {"splitting_tags", WORDS, false, false, "XML: elements that end a sentence"},
    {"non_splitting_tags", WORDS, false, false, "XML: elements that do not"},
    {"ignore_tags", WORDS, false, false, "XML: elements whose content stays"},
    {"enable_beta_languages", FLAG, false, false, "Accepted, without effect"},
    END};
static const dgm_api_field deepl_languages[] = {{"type", "'source'|'target'", false, false, "Which; default: source"},
                                                END};
static const dgm_api_field deepl_upload[] = {
    {"file", "binary", true, false, "Document"},
    SOURCE,
    TARGET,
    {"filename", "string", false, false, "Its name, where the form has none"},
    {"output_format", "string", false, false, "The file's own ending; others are not made"},
    FORMALITY,
    GLOSSARY_IDS,
    END};
static const dgm_api_field deepl_document[] = {
    {"document_key", "string+", true, false, "What the upload was answered with"}, END};
static const dgm_api_field deepl_glossary[] = {
    {"name", "string+", true, false, "For people"}, DIRECTION(false), ENTRIES, END};
static const dgm_api_field deepl_glossary_v3[] = {
    {"name", "string+", true, false, "For people"},
    {"dictionaries", "[#Dictionary;1,1000]", true, false, "Terms of each direction"},
    END};
static const dgm_api_field deepl_glossary_patch[] = {
    {"name", "string+", false, false, "For people"},
    {"dictionaries", "[#Dictionary;0,1000]", false, false, "Terms that are added, or get another translation"},
    END};
static const dgm_api_field deepl_dictionary[] = {DIRECTION(false), ENTRIES, END};
static const dgm_api_field deepl_direction[] = {DIRECTION(true), END};

// ---- rows -------------------------------------------------------------------------------------------

#define JSON "application/json"
#define EVENTS "text/event-stream"
enum {
    TEXT_BODY = DGM_TAKES_JSON | DGM_TAKES_FORM,
    ANY_BODY = TEXT_BODY | DGM_TAKES_QUERY,
    FILE_BODY = DGM_TAKES_MULTIPART,
    QUERY = DGM_TAKES_QUERY
};
#define LANGUAGES_LIBRE "[{code:string,name:string,targets:[string]}]"
#define FRONTEND                                                                                                       \
    "{apiKeys:boolean,charLimit:integer,filesTranslation:boolean,frontendTimeout:integer,keyRequired:boolean,"         \
    "language:{source:#LanguageName,target:#LanguageName},suggestions:boolean,supportedFilesFormat:[string]}"
#define TRANSLATED                                                                                                     \
    "{translatedText:string|[string],alternatives?:[string|[string]],detectedLanguage?:#Detected|[#Detected]}"
#define LANGUAGES_V1 "{languages:[{code:string,name:string,targets:[string]}],source:string|null,target:string|null}"
#define PAIRS "{supported_languages:[{source_lang:string,target_lang:string}]}"
#define USAGE "{character_count:" COUNT ",character_limit:" COUNT "}"

static const dgm_api_row rows[] = {
    {"GET", "/", 0, false, NULL, NULL, 200, "text/html", NULL, ""},
    {"POST", "/", DGM_TAKES_FORM, false, page_form, NULL, 200, "text/html", NULL, ""},
    {"GET", "/status", 0, false, NULL, NULL, 200, "text/html", NULL, ""},
    {"POST", "/translate", ANY_BODY, false, libre_translate, NULL, 200, JSON, TRANSLATED, ""},
    {"POST", "/detect", ANY_BODY, false, libre_detect, NULL, 200, JSON, "[#Detected]", ""},
    {"GET", "/languages", 0, false, NULL, NULL, 200, JSON, LANGUAGES_LIBRE, ""},
    {"POST", "/translate_file", FILE_BODY, false, libre_file, NULL, 200, JSON, "{translatedFileUrl:string}", ""},
    {"GET", "/download_file/**", 0, false, NULL, "filename", 200, "application/octet-stream", NULL, "404"},
    {"GET", "/frontend/settings", 0, false, NULL, NULL, 200, JSON, FRONTEND, ""},
    {"POST", "/frontend/settings", 0, false, NULL, NULL, 200, JSON, FRONTEND, ""},
    {"POST", "/suggest", ANY_BODY, false, libre_suggest, NULL, 200, JSON, "{success:boolean}", ""},
    {"GET", "/health", 0, false, NULL, NULL, 200, JSON, "{status:string}", ""},
    {"GET", "/spec", 0, false, NULL, NULL, 200, JSON, "{swagger:string,paths:{*:any}}", ""},
    {"GET", "/metrics", 0, false, NULL, NULL, 200, "text/plain; version=0.0.4", NULL, "404"},
    {"POST", "/v1/translate", DGM_TAKES_JSON, true, v1_translate, NULL, 200, JSON "," EVENTS, "#Answer", ""},
    {"POST", "/v1/bulk", DGM_TAKES_JSON_LINES, false, v1_bulk, NULL, 200, "application/x-ndjson", NULL, ""},
    {"POST", "/v1/detect", DGM_TAKES_JSON, true, v1_detect, NULL, 200, JSON,
     "{detections:[[{language:string,confidence:number(0,1)}]]}", ""},
    {"GET", "/v1/languages", 0, false, NULL, NULL, 200, JSON, LANGUAGES_V1, ""},
    {"GET", "/v1/models", 0, false, NULL, NULL, 200, JSON, "{models:[#Model]}", ""},
    {"GET", "/v1/settings", 0, false, NULL, NULL, 200, JSON, "{settings:[#Setting]}", ""},
    {"POST", "/v1/document", FILE_BODY, false, v1_document, NULL, 200, "application/octet-stream," EVENTS, NULL,
     ""},
    {"GET", "/v1/stats", 0, false, NULL, NULL, 200, JSON, "#Stats", ""},
    {"GET", "/v1/openapi.json", 0, false, NULL, NULL, 200, JSON, "{openapi:string,paths:{*:any}}", ""},
    {"POST", "/v2/translate", TEXT_BODY, false, deepl_translate, NULL, 200, JSON, "{translations:[#DeepLTranslation]}",
     "404"},
    {"GET", "/v2/languages", QUERY, false, deepl_languages, NULL, 200, JSON, "[#DeepLLanguage]", ""},
    {"POST", "/v2/languages", TEXT_BODY, false, deepl_languages, NULL, 200, JSON, "[#DeepLLanguage]", ""},
    {"GET", "/v2/usage", 0, false, NULL, NULL, 200, JSON, USAGE, ""},
    {"POST", "/v2/usage", 0, false, NULL, NULL, 200, JSON, USAGE, ""},
    {"POST", "/v2/document", FILE_BODY, false, deepl_upload, NULL, 200, JSON,
     "{document_id:string,document_key:string}", "404"},
    {"POST", "/v2/document/*", TEXT_BODY, false, deepl_document, "document_id", 200, JSON, "#DocumentStatus", "404"},
    {"GET", "/v2/document/*", QUERY, false, deepl_document, "document_id", 200, JSON, "#DocumentStatus", "404"},
    {"POST", "/v2/document/*/result", TEXT_BODY, false, deepl_document, "document_id", 200,
     "application/octet-stream", NULL, "404"},
    {"GET", "/v2/document/*/result", QUERY, false, deepl_document, "document_id", 200, "application/octet-stream",
     NULL, "404"},
    {"GET", "/v2/glossary-language-pairs", 0, false, NULL, NULL, 200, JSON, PAIRS, ""},
    {"GET", "/v2/glossaries", 0, false, NULL, NULL, 200, JSON, "{glossaries:[#Glossary]}", ""},
    {"POST", "/v2/glossaries", TEXT_BODY, false, deepl_glossary, NULL, 201, JSON, "#Glossary", ""},
    {"GET", "/v2/glossaries/*", 0, false, NULL, "glossary_id", 200, JSON, "#Glossary", "404"},
    {"DELETE", "/v2/glossaries/*", 0, false, NULL, "glossary_id", 204, NULL, NULL, "404"},
    {"GET", "/v2/glossaries/*/entries", 0, false, NULL, "glossary_id", 200, "text/tab-separated-values", NULL, "404"},
    {"GET", "/v3/glossaries", 0, false, NULL, NULL, 200, JSON, "{glossaries:[#GlossaryV3]}", ""},
    {"POST", "/v3/glossaries", DGM_TAKES_JSON, false, deepl_glossary_v3, NULL, 201, JSON, "#GlossaryV3", ""},
    {"GET", "/v3/glossaries/*", 0, false, NULL, "glossary_id", 200, JSON, "#GlossaryV3", "404"},
    {"PATCH", "/v3/glossaries/*", DGM_TAKES_JSON, false, deepl_glossary_patch, "glossary_id", 200, JSON,
     "#GlossaryV3", "404"},
    {"DELETE", "/v3/glossaries/*", 0, false, NULL, "glossary_id", 204, NULL, NULL, "404"},
    {"GET", "/v3/glossaries/*/entries", QUERY, false, deepl_direction, "glossary_id", 200, JSON,
     "{dictionaries:[#Dictionary]}", "404"},
    {"PUT", "/v3/glossaries/*/dictionaries", TEXT_BODY, false, deepl_dictionary, "glossary_id", 200, JSON,
     "#Direction", "404"},
    {"DELETE", "/v3/glossaries/*/dictionaries", QUERY, false, deepl_direction, "glossary_id", 204, NULL, NULL, "404"},
};

const dgm_api_row *dgm_api_row_at(size_t index)
{
    return index < sizeof rows / sizeof rows[0] ? &rows[index] : NULL;
}

const dgm_api_row *dgm_api_row_of(const dgm_route *route)
{
    for (size_t i = 0; route && dgm_api_row_at(i); i++) {
        const dgm_api_row *row = dgm_api_row_at(i);
        if (strcmp(row->method, route->method) == 0 && strcmp(row->pattern, route->pattern) == 0) return row;
    }
    return NULL;
}

const dgm_api_field *dgm_api_field_of(const dgm_api_row *row, const char *name)
{
    for (const dgm_api_field *f = row ? row->fields : NULL; f && f->name; f++)
        if (strcmp(f->name, name) == 0) return f;
    return NULL;
}
