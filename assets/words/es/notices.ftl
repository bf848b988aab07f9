# Lo que la ventana dice que se hizo, y los títulos de lo que falló.

## Documentos y capas
done-order = El orden de capas que se combinan de formas distintas cambia lo que la máscara conserva; Deshacer lo recupera.
done-length = { $n } tokens, la longitud de { $name }.
done-lengths = { $q } x { $kv } tokens, de la línea { $line } del código.
done-added = { $path } se añadió a { $name } como capa; Deshacer la quita.
done-stays = { $path } queda como está hasta que guarde.
failed-read = No se pudo leer { $path }
done-read-again = { $path } se leyó de nuevo. Deshacer recupera lo que había.
done-connected = Conectado a { $host }.
done-cancelled = La ejecución se canceló.
done-begins-painted = La máscara ahora conserva solo lo pintado; Deshacer recupera todas las celdas.
done-begins-drawn = La máscara ahora conserva solo lo dibujado; Deshacer recupera todas las celdas.
failed-save = No se pudo guardar el documento
done-saved = Guardado { $path }
done-saved-run = Guardada la ejecución { $path }
failed-save-run = No se pudo guardar la ejecución
done-saved-script = Guardado { $path }, con maskloom_capturing al lado.
failed-save-script = No se pudo guardar el script de captura
done-saved-html = Guardado { $path }. Maskloom lo abre de nuevo.
failed-save-html = No se pudo guardar la página
failed-document = No se pudo leer el documento
done-restored = { $name } se recuperó; sigue sin guardar.
failed-open = No se pudo abrir { $path }
done-opened = Abierto { $path }. { $before }
done-imported = Importado { $path }. { $before }
done-inputs = Las ejecuciones usan q, k y v de { $path }: { $names }.
done-run = Abierta la ejecución { $path } con su documento { $name } ({ $what }). Deshacer recupera el documento anterior.
done-run-copy = de una copia más pequeña, { $sizes }
failed-export = La exportación se detuvo
done-exported = Exportado: { $files } en { $folder }
done-changed = Cambiado { $path }; el archivo antiguo se guarda al lado como { $name }. Escrito: { $files } en { $folder }
done-had-setting = { $path } ya tenía el ajuste y no cambió. Escrito: { $files } en { $folder }
done-read = Leído { $path }
done-installing = Instalando NVRTC; tarda alrededor de un minuto.
done-new = Un documento nuevo. Deshacer recupera el anterior.
done-compared = Comparado con { $name } tal como está ahora. Cámbielo, deshaga o abra otro documento.
done-linked = Los archivos enlazados se leyeron de nuevo.
done-presentation = Presentación: F11 recupera la ventana.
done-nvrtc = NVRTC está instalado en { $folder }.
done-undo-restores = Deshacer recupera el documento anterior.
done-keeps-tab = El documento anterior conserva su pestaña.
done-unsaved = { $name } no se guardó; Archivo > { $command } lo enumera.
done-undone = Deshecho: { $step }
done-again = Rehecho: { $step }
done-detached = La carrera sigue como trabajo { $id }, también sin esta ventana. Trabajos la enumera.
done-job = Trabajo { $id }: { $state }; se guardan { $done } de { $steps } resultados.
done-jobs-removed = Se quitaron { $jobs } trabajos.
failed-open-there = No se pudo abrir { $path } en { $target }
done-opened-there = Abierto { $path }; aquí todavía no tiene archivo. { $before }
mending-again = La sesión de la ventana empezó de nuevo
done-code = El código se copió.
done-picture = La imagen se copió.
done-page = La imagen de la página se copió.
sweep-plain = los valores como una ventana se quedan
sweep-grids = las cuadrículas se reducen junto con los valores que cuentan a lo largo de ellas

## Pasos
step-open = Abrir { $name }
step-rename = Cambiar el nombre del documento
step-about = Editar la descripción
step-axes = Cambiar los ejes
step-settings = Cambiar los ajustes
step-add = Añadir { $name }
step-remove = Quitar una capa
step-move = Reordenar capas
step-name = Cambiar el nombre de una capa
step-enable = Activar una capa
step-disable = Desactivar una capa
step-combine = Cambiar cómo se combina una capa
step-heads = Cambiar las cabezas de una capa
step-layer = Cambiar una capa
step-change = Cambiar { $name }
step-code = Editar código
step-paint = Pintar
step-erase = Borrar
step-nothing = Nada

## Una carrera por longitudes
sweep-heads = { $n } cabezas; { $moves }
sweep-some-heads = { $n } de { $all } cabezas; { $moves }

## Lo que el worker dice que hace
work-backends = buscando backends
work-inputs = creando las entradas
work-blocks = contando los bloques de la máscara
work-mods = comprobando los mods con el intérprete
work-reference = calculando la referencia en float64
work-rounding = midiendo el efecto del redondeo
work-warming = calentando
work-gradients = calculando gradientes
work-python = esperando a Python, que todavía no ha dicho nada
work-round = vuelta de medición { $n } de { $all }
work-timed = { $n } de { $all } vueltas medidas
work-preparing = preparando { $name }
work-compiling = compilando { $name }
work-done = { $name } terminó

## Por qué un backend es más rápido
why-short = { $why }; tan breve que cuenta el lanzamiento
why-skips-dense = { $share }; el otro lee la máscara como tensor denso y no omite nada
why-skips-scores = { $share }; el otro escribe cada puntuación en la memoria
why-skips-plain = { $share }; el otro calcula todos
why-computes = calcula el { $share }% de las teselas
why-skips = omite los bloques vacíos
why-both-skip = ambos omiten los bloques vacíos: la diferencia es del propio kernel
why-both-masked = ambos omiten lo enmascarado: la diferencia es del propio kernel
why-both-dense = ambos leen la máscara como tensor denso: la diferencia es del propio kernel
why-dense-skips = lee la máscara como tensor denso y no omite nada; el otro omite los bloques vacíos
why-scores = escribe cada puntuación en la memoria y la vuelve a leer
why-dense-scores = lee una máscara densa, pero no escribe puntuaciones; el otro escribe cada puntuación en la memoria
why-other-scores = el otro escribe cada puntuación en la memoria y la vuelve a leer
why-same = la misma aritmética: la diferencia es del propio kernel
why-nothing-masked = no hay nada enmascarado: la diferencia es del propio kernel
why-other-dense = el otro lee la máscara como tensor denso y no omite nada
why-dense = lee la máscara como tensor denso y no omite nada
why-launch = limitado por el lanzamiento: { $call } por llamada, { $own } en la GPU
