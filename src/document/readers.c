// SPDX-License-Identifier: MIT
// Kinds of files: one row each.
#include "document/document.h"

extern const dgm_document_reader dgm_txt_reader, dgm_json_reader, dgm_po_reader, dgm_srt_reader, dgm_vtt_reader,
    dgm_properties_reader, dgm_csv_reader, dgm_tsv_reader, dgm_html_reader, dgm_md_reader, dgm_yaml_reader;
extern const dgm_document_reader dgm_docx_reader, dgm_pptx_reader, dgm_xlsx_reader, dgm_odt_reader, dgm_odp_reader,
    dgm_ods_reader, dgm_epub_reader, dgm_xliff_reader, dgm_xml_reader, dgm_pdf_reader;

const dgm_document_reader *const dgm_document_readers[] = {
    &dgm_txt_reader,
    &dgm_md_reader,
    &dgm_html_reader,
    &dgm_srt_reader,
    &dgm_vtt_reader,
    &dgm_po_reader,
    &dgm_json_reader,
    &dgm_yaml_reader,
    &dgm_properties_reader,
    &dgm_csv_reader,
    &dgm_tsv_reader,
    &dgm_xliff_reader,
    &dgm_xml_reader,
    &dgm_docx_reader,
    &dgm_pptx_reader,
    &dgm_xlsx_reader,
    &dgm_odt_reader,
    &dgm_odp_reader,
    &dgm_ods_reader,
    &dgm_epub_reader,
    &dgm_pdf_reader,
    NULL,
};
