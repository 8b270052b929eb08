// SPDX-License-Identifier: MIT
// Kinds of files: one row each.
#include "document/document.h"

extern const dgm_document_reader dgm_txt_reader, dgm_json_reader, dgm_po_reader, dgm_srt_reader, dgm_vtt_reader,
    dgm_properties_reader, dgm_csv_reader, dgm_tsv_reader, dgm_html_reader, dgm_md_reader, dgm_yaml_reader;

const dgm_document_reader *const dgm_document_readers[] = {
    &dgm_txt_reader,  &dgm_md_reader,   &dgm_html_reader,       &dgm_srt_reader, &dgm_vtt_reader, &dgm_po_reader,
    &dgm_json_reader, &dgm_yaml_reader, &dgm_properties_reader, &dgm_csv_reader, &dgm_tsv_reader, NULL,
};
